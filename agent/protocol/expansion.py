"""Words of a Dockerfile as engines read them: where they end, and what quotes, escapes and
variables make of them. Pure.

What engines do not all read alike is not clear, and then the answer is None.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Lookup = Callable[[str], str | None]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])([^${}\"'\\`]*))?\}")
# After a dollar sign these begin no variable, for any engine.
_NO_VARIABLE: Final = re.compile(r"[./:,=%&;~^|<>()\[\]]|\Z")
_QUOTES: Final = "\"'"


class Expansion:
    """`lookup` says what a variable holds (empty for one that is not set), None for unclear."""

    def __init__(self, escape: str, lookup: Lookup) -> None:
        self._escape = escape
        self._lookup = lookup

    def of(self, word: str) -> str | None:
        """Without its quotes and escapes, and with its variables filled in."""
        made, quote, at = "", "", 0
        while at < len(word):
            sign = word[at]
            if quote == "'" and sign != "'":
                made, at = made + sign, at + 1
            elif sign in _QUOTES and quote in ("", sign):
                quote, at = ("" if quote else sign), at + 1
            elif sign == self._escape:
                following = word[at + 1 : at + 2]
                is_kept = quote == '"' and following not in ('"', "$", self._escape)
                made += sign + following if is_kept else following
                at += 2
            elif sign == "$":
                value, at = self._variable(word, at + 1)
                if value is None:
                    return None
                made += value
            else:
                made, at = made + sign, at + 1
        return None if quote else made

    def _variable(self, word: str, at: int) -> tuple[str | None, int]:
        """Its value, and where the word goes on behind it."""
        if found := _NAME.match(word, at):
            if word[found.end() : found.end() + 1] > "~":
                # Of the name, for an engine that takes letters of every alphabet.
                return None, at
            return self._lookup(found[0]), found.end()
        if found := _BRACED.match(word, at):
            value = self._lookup(found[1])
            sign, other = found[2] or "", found[3] or ""
            if value is None or (not value and sign in {"-", "+"}):
                # Set to nothing is not unset for those.
                return None, at
            if sign.endswith("-"):
                value = value or other
            elif sign.endswith("+"):
                value = other if value else ""
            return value, found.end()
        if _NO_VARIABLE.match(word, at):
            return "$", at
        return None, at


def quoted_words(text: str, escape: str) -> list[str]:
    """As ENV and ARG split them: spaces within quotes, or behind an escape, do not end a word.
    Quotes and escapes stay in it."""
    words, word, quote, at = list[str](), "", "", 0
    while at < len(text):
        sign = text[at]
        if sign.isspace() and not quote:
            words += [word] if word else []
            word, at = "", at + 1
            continue
        if sign == escape and quote != "'":
            following = text[at + 1 : at + 2]
            word, at = word + (sign + following if following else ""), at + 2
            continue
        if sign in _QUOTES and quote in ("", sign):
            quote = "" if quote else sign
        word, at = word + sign, at + 1
    return [*words, word] if word else words


def escaped(text: str, escape: str) -> str:
    """A word that means exactly this text to an engine."""
    return "".join(f"{escape}{sign}" if sign in f"$\"'{escape}" else sign for sign in text)
