"""Ships one build's output to the server: batches, byte offsets, bounded memory, resends."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from agent.clock import Backoff
from agent.errors import LogOffsetMoved, ServerError, ServerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.server.port import Server

BATCH_SECONDS = 0.25
BATCH_BYTES = 256 * 1024
LONGEST_LINE = 16 * 1024
HEAD_BYTES = 1024 * 1024
TAIL_BYTES = 4 * 1024 * 1024


class LogShipper:
    """The first MiB is kept whole; after that the oldest unsent output gives way, marked as a gap.
    Offsets belong to the server: it says how many bytes it has, the shipper goes on from there."""

    def __init__(self, server: Server, build_id: str, *, epoch: Callable[[], int]) -> None:
        self._server = server
        self._build_id = build_id
        self._epoch = epoch
        self._condition = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._total = 0
        self._dropped = 0
        self._offset = 0
        self._closing = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log-{build_id[:8]}", daemon=True)
        self._thread.start()

    @property
    def sent_bytes(self) -> int:
        return self._offset

    def write(self, text: str) -> None:
        if not text:
            return
        data = "".join(_cut(line) for line in text.splitlines(keepends=True)).encode()
        with self._condition:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._total += len(data)
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
        while self._waiting_bytes > HEAD_BYTES + TAIL_BYTES and len(self._waiting) > 1:
            index = 1 if self._total < HEAD_BYTES else 0
            piece = self._waiting[index]
            del self._waiting[index]
            self._waiting_bytes -= len(piece)
            self._dropped += len(piece)

    def _run(self) -> None:
        backoff = Backoff(first=0.5, limit=30.0)
        failures = 0
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting and self._closing:
                    break
                if not self._closing:
                    self._condition.wait(BATCH_SECONDS)
                batch = self._take()
            while batch:
                try:
                    batch = self._send(batch)
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
        self._over.set()

    def _take(self) -> bytes:
        pieces = []
        size = 0
        if self._dropped:
            pieces.append(f"\n… {self._dropped} bytes of output left out …\n".encode())
            self._dropped = 0
        while self._waiting and size < BATCH_BYTES:
            piece = self._waiting.popleft()
            self._waiting_bytes -= len(piece)
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def _send(self, batch: bytes) -> bytes:
        """What is still to be sent. A reply that got lost shows as an offset inside the batch."""
        epoch = self._epoch()
        if not epoch:
            raise ServerUnavailable("No session is open.")
        try:
            self._offset = self._server.append_log(
                self._build_id, epoch=epoch, offset=self._offset, data=batch
            )
        except LogOffsetMoved as moved:
            known = moved.offset - self._offset
            self._offset = moved.offset
            return batch[known:] if 0 < known <= len(batch) else batch
        return b""


def _cut(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    rest = len(line.rstrip("\r\n")) - LONGEST_LINE
    return f"{line[:LONGEST_LINE]} … {rest} characters cut\n"
