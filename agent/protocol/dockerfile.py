"""The lines of a Dockerfile as engines read them, and what they do not all read alike.

Whatever hides a line from this reading hides it from the rules about builds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRECTIVE: Final = re.compile(r"\s*#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*\Z")
# After any other name an engine looks for no more of them.
_DIRECTIVES: Final = frozenset({"escape", "syntax", "check"})
_USUAL_SIGN: Final = "\\"
_OTHER_SIGN: Final = "`"
_ESCAPE: Final = re.compile(r"\s*#\s*escape\s*=\s*(.*?)\s*\Z", re.IGNORECASE)
# Ends of lines and spaces for some readers, and nothing of the kind for others.
_ODD: Final = re.compile("[\v\f\x1c-\x1f\x85\u2028\u2029]|\r(?!\n|\\Z)")

# The word that begins one; `<<<` is a shell's own. What variables leave in front may be nothing.
_HERE_DOCUMENT: Final = re.compile(r"(?:.*\})?\d*<<-?[^<\s]", re.DOTALL)
_MAY_HOLD_TEXT: Final = frozenset({"RUN", "COPY", "ADD"})


def lines_problem(dockerfile: str) -> str:
    """Why it is not certain where the instructions begin and end, or empty."""
    if odd := _ODD.search(dockerfile):
        return (
            f"The Dockerfile holds the character U+{ord(odd[0]):04X}, which engines do not all "
            "read alike. Remove it."
        )
    lines = split_lines(dockerfile)
    if _has_doubtful_escape(lines):
        return (
            "Engines do not all read the line with escape= alike. Remove it, or write it as "
            "`# escape=`, with \\ or ` behind, above everything else."
        )
    escape = escape_sign(lines)
    for number, line in enumerate(lines, start=1):
        if not _is_comment(line) and _has_doubtful_end(line, escape):
            return (
                f"Engines do not agree whether line {number} of the Dockerfile ends there: write "
                f"one {escape} at its end to go on, and nothing behind it, or none."
            )
    if any(holds_text(words) for words in instructions(dockerfile)):
        return (
            "The Dockerfile holds a here-document (<<). The engine's older builder leaves its "
            "text out, or takes it for instructions. Put the text into a file of the image."
        )
    return ""


def holds_text(words: list[str]) -> bool:
    """Whether a here-document follows: lines that are none of the Dockerfile's own."""
    verbs = {word.upper() for word in words[:2]}
    return bool(verbs & _MAY_HOLD_TEXT) and any(map(_HERE_DOCUMENT.match, words[1:]))


def escape_sign(lines: list[str]) -> str:
    """The sign that joins lines: a directive above everything else may choose another."""
    for line in lines:
        found = _DIRECTIVE.match(line.removeprefix("\ufeff"))
        if not found or found[1].lower() not in _DIRECTIVES:
            break
        if found[1].lower() == "escape":
            return found[2]
    return _USUAL_SIGN


@dataclass(frozen=True)
class Instruction:
    """With joined lines put together and comments left out; `first` and `last` are the numbers of
    its lines, counted from 0."""

    text: str
    first: int
    last: int

    @property
    def words(self) -> list[str]:
        return self.text.split()


def instructions(dockerfile: str) -> Iterator[list[str]]:
    """The words of each."""
    for instruction in read(dockerfile):
        yield instruction.words


def read(dockerfile: str) -> Iterator[Instruction]:
    lines = split_lines(dockerfile)
    escape, text, first = escape_sign(lines), "", -1
    last = len(lines) - 1
    for number, line in enumerate(lines):
        if not line.strip() or _is_comment(line):
            # Neither ends an instruction that goes on.
            continue
        first = number if first < 0 else first
        # Other spaces behind the sign end the instruction for an engine.
        bare = line.rstrip("\r\n").rstrip(" \t")
        goes_on = bare.endswith(escape)
        text += bare.removesuffix(escape)
        if goes_on:
            continue
        if text.split():
            yield Instruction(text, first, number)
        text, first = "", -1
    if text.split():
        yield Instruction(text, first, last)


def split_lines(dockerfile: str) -> list[str]:
    return dockerfile.removeprefix("\ufeff").split("\n")


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _has_doubtful_escape(lines: list[str]) -> bool:
    """Only at the very top, or behind the syntax, does it count for every engine."""
    is_at_top = True
    for line in takewhile(lambda line: not line.strip() or _is_comment(line), lines):
        if (found := _ESCAPE.match(line)) and found[1] != _USUAL_SIGN:
            return found[1] != _OTHER_SIGN or not is_at_top
        directive = _DIRECTIVE.match(line)
        is_at_top = is_at_top and directive is not None and directive[1].lower() == "syntax"
    return False


def _has_doubtful_end(line: str, escape: str) -> bool:
    """The sign twice goes on for older builders and ends the line for newer ones."""
    line = line.rstrip("\r")
    bare = line.rstrip()
    if not bare.endswith(escape):
        return False
    return bare.endswith(escape * 2) or bool(line[len(bare) :].strip(" \t"))
