"""Sends the frames of many streams over one socket, in turn: a busy stream delays no other."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from agent.protocol.sessions import Frame, FrameKind, encode_frame

if TYPE_CHECKING:
    from collections.abc import Callable


class FairSender:
    """One frame of each stream per round. Credit goes first: it is what the other side waits for.

    Its memory is bounded by the streams' windows: who has no credit puts nothing in.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._turn = threading.Condition()
        self._urgent: deque[bytes] = deque()
        self._waiting: dict[int, deque[bytes]] = {}
        self._stopped = False

    def put(self, frame: Frame) -> None:
        data = encode_frame(frame)
        with self._turn:
            if self._stopped:
                return
            if frame.kind is FrameKind.CREDIT:
                self._urgent.append(data)
            else:
                self._waiting.setdefault(frame.stream, deque()).append(data)
            self._turn.notify()

    def queued_bytes(self) -> int:
        with self._turn:
            return sum(len(data) for queue in self._waiting.values() for data in queue)

    def stop(self) -> None:
        with self._turn:
            self._stopped = True
            self._urgent.clear()
            self._waiting.clear()
            self._turn.notify()

    def run(self) -> None:
        """Until `stop`, or the end of the connection, which the receiving side notices too."""
        while True:
            with self._turn:
                while not (self._stopped or self._urgent or self._waiting):
                    self._turn.wait()
                if self._stopped:
                    return
                data = self._next()
            try:
                self._send(data)
            except OSError:
                self.stop()
                return

    def _next(self) -> bytes:
        if self._urgent:
            return self._urgent.popleft()
        stream, queue = next(iter(self._waiting.items()))
        data = queue.popleft()
        # To the end of the line.
        del self._waiting[stream]
        if queue:
            self._waiting[stream] = queue
        return data
