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
        lines = text.splitlines(keepends=True)
        if not lines:
            return ""
        if max(map(len, lines)) + self._length <= self._longest:
            # As good as always; a flood of short lines is not looked at one by one.
            last = lines[-1]
            ended = last.endswith(("\n", "\r"))
            before = self._length if len(lines) == 1 else 0
            self._length = 0 if ended else before + len(last)
            return text
        return "".join(self._line(line) for line in lines)

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
