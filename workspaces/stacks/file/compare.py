"""Two versions of a text, line by line, as people read them; pure."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

_CONTEXT: Final = 3
_MAX_LINES: Final = 2000


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    """`kind` is added, removed, same or gap; a number is None where the line is not."""

    kind: str
    text: str
    old_number: int | None = None
    new_number: int | None = None


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Nothing when both are equal; otherwise the changes with a few lines around them."""
    before, after = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    lines: list[DiffLine] = []
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            lines.append(DiffLine(kind="gap", text="…"))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [
                    DiffLine(
                        kind="same",
                        text=before[old_from + step],
                        old_number=old_from + step + 1,
                        new_number=new_from + step + 1,
                    )
                    for step in range(old_to - old_from)
                ]
                continue
            lines += [
                DiffLine(kind="removed", text=before[at], old_number=at + 1)
                for at in range(old_from, old_to)
            ]
            lines += [
                DiffLine(kind="added", text=after[at], new_number=at + 1)
                for at in range(new_from, new_to)
            ]
    return lines[:_MAX_LINES]
