"""The engine's byte streams as bytes: HTTP chunks and the frames of containers without a terminal.

Pure and incremental: bytes go in as they arrive, and come out as soon as they can.
"""

from __future__ import annotations

import struct

_FRAME = struct.Struct(">BxxxL")


class Plain:
    """Nothing wrapped."""

    ended = False

    def feed(self, data: bytes) -> bytes:
        return data


class Dechunker:
    """Takes HTTP's chunked encoding away. The connection stays open after the last chunk."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._wanted = 0
        # Bytes of the line end after a chunk that are still to come.
        self._line_end = 0

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        self._rest = b""
        found = []
        at = 0
        while at < len(data) and not self.ended:
            if self._wanted:
                piece = data[at : at + self._wanted]
                found.append(piece)
                at += len(piece)
                self._wanted -= len(piece)
                self._line_end = 2 if not self._wanted else 0
                continue
            if self._line_end:
                step = min(self._line_end, len(data) - at)
                self._line_end -= step
                at += step
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._rest = data[at:]
                break
            self._wanted = int(data[at:end].partition(b";")[0], 16)
            at = end + 2
            self.ended = not self._wanted
        return b"".join(found)


class Demultiplexer:
    """Joins output and errors in their order."""

    ended = False

    def __init__(self) -> None:
        self._rest = b""
        self._wanted = 0

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        self._rest = b""
        found = []
        at = 0
        while at < len(data):
            if not self._wanted:
                if len(data) - at < _FRAME.size:
                    self._rest = data[at:]
                    break
                self._wanted = _FRAME.unpack_from(data, at)[1]
                at += _FRAME.size
                continue
            piece = data[at : at + self._wanted]
            found.append(piece)
            at += len(piece)
            self._wanted -= len(piece)
        return b"".join(found)
