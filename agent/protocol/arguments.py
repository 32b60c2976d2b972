"""Build arguments as FROM sees them: those that ARG lines above the first FROM declare."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE: Final = re.compile(
    r"\$(?:(?P<bare>[A-Za-z_]\w*)"
    r"|\{(?P<name>[A-Za-z_]\w*)(?:(?P<sign>:?[-+])(?P<word>[^${}]*))?\})",
    re.ASCII,
)
# No reference has other letters than these, but a variable's name may.
UNCLEAR: Final = re.compile(r"[\"'`$\\{}]|[^!-~]")
# BuildKit knows these without any ARG, and the older builder does not.
_OF_THE_ENGINE: Final = re.compile(r"(?:TARGET|BUILD)[A-Z]+")
# Where its words end is certain, and what it is called.
_PLAIN: Final = re.compile(r"""[^"'`$\\{}=]*(?:=(?:[^"'`\\]|"[^"`\\]*"|'[^'`\\]*')*)?""")


class Arguments:
    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        # None: declared without a value. What is not in it may be anything.
        self._values: dict[str, str | None] = {}
        self._is_sure = True

    def declare(self, words: list[str]) -> None:
        if not all(_PLAIN.fullmatch(word) for word in words):
            # It may have declared any name.
            self._values.clear()
            self._is_sure = False
            return
        for word in words:
            name, has_default, default = word.partition("=")
            if name in self._given:
                self._values[name] = self._given[name]
            elif has_default:
                self._values[name] = self.expanded(default)
            elif self._is_sure and name not in self._values and not _OF_THE_ENGINE.match(name):
                self._values[name] = None
            else:
                # Some engines keep what it was, others forget it: it stands for itself.
                self._values[name] = f"${name}"

    def expanded(self, text: str) -> str:
        """With its variables filled in; what this does not understand stays, and is not clear."""
        is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        inner = text[1:-1] if is_quoted else text
        return inner if is_quoted and text[0] == "'" else _VARIABLE.sub(self._value, inner)

    def _value(self, found: re.Match[str]) -> str:
        name, sign, word = found["bare"] or found["name"], found["sign"] or "", found["word"] or ""
        value = self._values.get(name)
        if name not in self._values or UNCLEAR.search(value or ""):
            return found[0]
        if value is None and sign in {"-", "+"}:
            # Declared without a value is set for some engines, and not for others.
            return found[0]
        is_there = value is not None if len(sign) == 1 else bool(value)
        if sign.endswith("-"):
            return (value or "") if is_there else word
        if sign.endswith("+"):
            return word if is_there else ""
        return value or ""
