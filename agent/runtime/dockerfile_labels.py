"""Labels of a build, written into its Dockerfile. Pure.

An engine that is given labels beside the Dockerfile makes one more step of them at the end, with a
container of its own, in every build. Right behind FROM the same step comes from the cache.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from agent.protocol.bases import escape_sign

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SIMPLE = re.compile(r"[\w./:-]*\Z", re.ASCII)
_FROM = re.compile(r"\s*FROM\s", re.IGNORECASE)
_NAME = re.compile(r"\sAS\s+(\S+)\s*\Z", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"(parse error (?:on )?line )(\d+)")
# Their steps may say otherwise than ours, or are not read line by line. The image with what was
# fetched is none of theirs.
_UNCLEAR = re.compile(r"<<|\btrailer\.(?!invalid/sources/)")


def labelled(dockerfile: str, labels: Mapping[str, str], *, target: str) -> str | None:
    """None where it is not certain what the text means: the engine has to add the labels then."""
    words = [text for pair in labels.items() for text in pair]
    if not words or _UNCLEAR.search(dockerfile) or not all(map(_SIMPLE.match, words)):
        return None
    lines = dockerfile.splitlines(keepends=True)
    place = _place(lines, target)
    if place is None:
        return None
    pairs = " ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    before = "".join(lines[:place])
    newline = "" if before.endswith("\n") else "\n"
    return f"{before}{newline}LABEL {pairs}\n{''.join(lines[place:])}"


def told_as_written(message: str, *, text: str, dockerfile: str) -> str:
    """A message about the labelled text, with line numbers of the Dockerfile itself."""
    if text == dockerfile:
        return message
    pairs = zip(text.splitlines(), dockerfile.splitlines(), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def written(found: re.Match[str]) -> str:
        number = int(found[2])
        return f"{found[1]}{number - 1 if number > same + 1 else number}"

    return _LINE_NUMBER.sub(written, message)


def _place(lines: list[str], target: str) -> int | None:
    """Number of the line behind the FROM of the stage that is built."""
    stages = list(_stages(lines))
    if not target:
        return stages[-1][1] if stages else None
    for number, (name, end) in enumerate(stages):
        if target.lower() in (name.lower(), str(number)):
            return end
    return None


def _stages(lines: list[str]) -> Iterator[tuple[str, int]]:
    """(name, number of the line behind its FROM) of each stage."""
    escape, goes_on, is_from, text = escape_sign(lines), False, False, ""
    for number, line in enumerate(lines):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            # Neither ends an instruction that goes on.
            continue
        if not goes_on:
            is_from, text = bool(_FROM.match(line)), ""
        goes_on = bare.endswith(escape)
        text += " " + bare.removesuffix(escape)
        if is_from and not goes_on:
            named = _NAME.search(text)
            yield (named[1] if named else ""), number + 1
