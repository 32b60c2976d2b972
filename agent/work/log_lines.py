"""Long lines of a build's output cut short, wherever the engine happened to break them."""

from __future__ import annotations

from typing import Final

LONGEST_LINE: Final = 16 * 1024


class LineCutter:
    """Output comes in pieces that know nothing of lines: one line may be spread over many."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._length = 0

    def cut(self, text: str) -> str:
        if self._is_short(text):
            # As good as always; a flood of short lines is not looked at one by one.
            ended = max(text.rfind("\n"), text.rfind("\r"))
            before = self._length if ended < 0 else 0
            self._length = before + len(text) - ended - 1
            return text
        return "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _is_short(self, text: str) -> bool:
        """Whether no line can be too long: a newline is found wherever one would be."""
        begun = -self._length
        while len(text) - begun > self._longest:
            newline = text.rfind("\n", max(0, begun), max(0, begun + self._longest))
            if newline < 0:
                return False
            begun = newline + 1
        return True

    def _line(self, line: str) -> str:
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        room = max(0, self._longest - self._length)
        self._length += len(body)
        shown = body[:room]
        if not end:
            return shown
        over, self._length = self._length - self._longest, 0
        return f"{shown} … {over} characters cut\n" if over > 0 else f"{shown}{end}"
