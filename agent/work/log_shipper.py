"""Ships one build's output to the server: batches, byte offsets, bounded memory, resends."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from agent import clock
from agent.clock import Backoff
from agent.errors import LogOffsetMoved, ServerError, ServerUnavailable
from agent.work.log_lines import LineCutter

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.server.port import Server

# At most one batch in this time, so at most 1 MiB a second; the first one goes at once.
BATCH_SECONDS = 0.25
BATCH_BYTES = 256 * 1024
HEAD_BYTES = 1024 * 1024
TAIL_BYTES = 4 * 1024 * 1024
# The mark of a gap lies inside of what the server keeps of the beginning: it must not be trimmed.
_MARK_ROOM = 128
# Small pieces are gathered: a million of them would cost far more than their bytes.
_PIECE_BYTES = 16 * 1024


class LogShipper:
    """The first MiB is kept whole; after that the oldest unsent output gives way, marked as a gap.
    Offsets belong to the server: it says how many bytes it has, the shipper goes on from there.
    It is asked first: an earlier try's output may be there, and what is sent to an offset before
    its end counts as known."""

    def __init__(self, server: Server, build_id: str, *, epoch: Callable[[], int]) -> None:
        self._server = server
        self._build_id = build_id
        self._epoch = epoch
        self._condition = threading.Condition()
        self._cutter = LineCutter()
        # The beginning, then what was dropped, then the end.
        self._head: deque[bytearray] = deque()
        self._dropped = 0
        self._tail: deque[bytearray] = deque()
        self._waiting_bytes = 0
        self._offset = 0
        self._is_offset_known = False
        # What was taken from the waiting and has not arrived yet.
        self._in_flight = 0
        self._next_batch = 0.0
        self._closing = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log-{build_id[:8]}", daemon=True)
        self._thread.start()

    @property
    def sent_bytes(self) -> int:
        return self._offset

    @property
    def total_bytes(self) -> int:
        """How long the stored log will be once all of it has arrived; final after `close`."""
        with self._condition:
            return self._end()

    @property
    def held_bytes(self) -> int:
        """Output that waits here; never more than what the server would keep."""
        with self._condition:
            return self._waiting_bytes

    def write(self, text: str) -> None:
        data = self._cutter.cut(text).encode(errors="replace")
        if not data:
            return
        with self._condition:
            is_head = not self._tail and self._end() + len(data) <= HEAD_BYTES - _MARK_ROOM
            waiting = self._head if is_head else self._tail
            if waiting and len(waiting[-1]) + len(data) <= _PIECE_BYTES:
                waiting[-1] += data
            else:
                waiting.append(bytearray(data))
            self._waiting_bytes += len(data)
            self._shed()
            self._condition.notify_all()

    def close(self, *, patience: float) -> None:
        """Wait for the rest to arrive; what a silent server has not taken is tried on for a while
        by the shipper's own thread."""
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        self._over.wait(patience)

    def _shed(self) -> None:
        """Keep memory bounded while the server is away or slow."""
        while self._waiting_bytes > HEAD_BYTES + TAIL_BYTES and len(self._tail) > 1:
            piece = self._tail.popleft()
            self._waiting_bytes -= len(piece)
            self._dropped += len(piece)

    def _run(self) -> None:
        backoff = Backoff(first=0.5, limit=30.0)
        failures = 0
        while batch := self._next():
            while batch:
                try:
                    batch = self._sent(batch)
                    backoff.reset()
                    failures = 0
                except ServerUnavailable:
                    failures += 1
                    if self._closing and failures > 20:
                        self._over.set()
                        return
                    threading.Event().wait(backoff.next_delay())
                except ServerError:
                    # Refused for good (the build is gone): its output has no reader.
                    batch = b""
                    self._arrived(self._offset, batch)
        self._over.set()

    def _next(self) -> bytes:
        """Empty at the end. A lone line goes at once, a flood only as fast as batches may."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting_bytes or self._closing)
            pause = self._next_batch - clock.monotonic()
            if pause > 0:
                self._condition.wait_for(lambda: self._closing, pause)
            self._next_batch = clock.monotonic() + BATCH_SECONDS
            return self._take()

    def _take(self) -> bytes:
        pieces = bytearray()
        while self._waiting_bytes and len(pieces) < BATCH_BYTES:
            if not self._head:
                pieces += self._gap()
                self._dropped = 0
            piece = (self._head or self._tail).popleft()
            self._waiting_bytes -= len(piece)
            pieces += piece
        self._in_flight = len(pieces)
        return bytes(pieces)

    def _end(self) -> int:
        """Where the next byte will lie in the stored log."""
        return self._offset + self._in_flight + len(self._gap()) + self._waiting_bytes

    def _gap(self) -> bytes:
        if not self._dropped:
            return b""
        return f"\n… {self._dropped} bytes of output left out …\n".encode()

    def _sent(self, batch: bytes) -> bytes:
        """What is still to be sent: all of it when the server has less than it said, as after an
        older backup. A batch whose reply got lost is sent again, and stored once."""
        epoch = self._epoch()
        if not epoch:
            raise ServerUnavailable("No session is open.")
        if not self._is_offset_known:
            held = self._server.append_log(self._build_id, epoch=epoch, offset=0, data=b"")
            self._arrived(held, batch)
            self._is_offset_known = True
        try:
            offset = self._server.append_log(
                self._build_id, epoch=epoch, offset=self._offset, data=batch
            )
        except LogOffsetMoved as moved:
            return self._arrived(moved.offset, batch)
        return self._arrived(offset, b"")

    def _arrived(self, offset: int, rest: bytes) -> bytes:
        with self._condition:
            self._offset, self._in_flight = offset, len(rest)
        return rest
