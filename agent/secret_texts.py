"""Secrets in a text: where they are, however they are written, at a bounded price."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from agent.protocol.compare import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Masking shorter values would leave nothing of a log, and shorter lines of long ones tell nothing.
SHORTEST: Final = 4
_SHORTEST_LINE: Final = 8
# Lines of more lengths than this with the same beginning are not told apart.
_MOST_LENGTHS: Final = 32

Span = tuple[int, int]


class SecretTexts:
    """Whole values are few and looked for one by one. Their lines may be many thousands: those
    are found by their first characters, so that looking through a text costs the same."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = list(secrets)
        self._texts = {text for value in values for text in _spellings(value)}
        self._lines = {line for value in values for line in _lines(value)} - self._texts
        lengths: dict[str, set[int]] = {}
        for line in self._lines:
            lengths.setdefault(line[:_SHORTEST_LINE], set()).add(len(line))
        self._lengths = {start: sorted(found) for start, found in lengths.items()}
        # What comes in one line.
        single = (text for text in self._texts | self._lines if "\n" not in text)
        self.longest = max(map(len, single), default=0)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def masked(self, text: str) -> str:
        parts, at = [], 0
        for start, end in self._spans(text):
            parts.append(text[at:start])
            at = end
        return MASK.join([*parts, text[at:]])

    def cut(self, text: str) -> int:
        """How much of an unfinished line may go on its way: no secret lies across that place,
        whatever follows."""
        place = max(0, len(text) - max(0, self.longest - 1))
        for start, end in self._spans(text):
            if start < place < end:
                # One that begins the text would hold it back for ever.
                return start or end
        return place

    def _spans(self, text: str) -> Iterator[Span]:
        """In order; those that overlap as one."""
        found = sorted([*self._whole(text), *self._by_line(text)])
        start, end = 0, 0
        for first, last in found:
            if first >= end:
                if end > start:
                    yield start, end
                start = first
            end = max(end, last)
        if end > start:
            yield start, end

    def _whole(self, text: str) -> Iterator[Span]:
        for secret in self._texts:
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = text.find(secret, at + len(secret))

    def _by_line(self, text: str) -> Iterator[Span]:
        lengths, lines = self._lengths, self._lines
        if not lengths:
            return
        until = 0
        for at in range(len(text) - _SHORTEST_LINE + 1):
            possible = lengths.get(text[at : at + _SHORTEST_LINE])
            if possible is None or at < until:
                continue
            if len(possible) > _MOST_LENGTHS:
                end = text.find("\n", at)
                until = len(text) if end < 0 else end
                yield at, until
                continue
            for length in possible:
                if text[at : at + length] in lines:
                    yield at, at + length


def _spellings(value: str) -> Iterator[str]:
    """As it is, and as programs write it."""
    for text in {value, value.strip()}:
        if len(text) >= SHORTEST and text.strip():
            yield from (text, json.dumps(text)[1:-1], quote(text, safe=""), _base64(text))


def _lines(value: str) -> Iterator[str]:
    for line in value.strip().splitlines():
        if len(line.strip()) >= _SHORTEST_LINE:
            yield line.strip()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode().rstrip("=")
