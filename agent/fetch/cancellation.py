"""Ends a fetch from another thread, whatever it waits for."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from agent.errors import FetchCancelled, FetchError


class Cancellation:
    """One per fetch. The first reason counts; `check` raises it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: FetchError | None = None
        self._sockets: list[socket.socket] = []

    def cancel(self, reason: FetchError | None = None) -> None:
        with self._lock:
            if self._reason is None:
                self._reason = reason or FetchCancelled("Cancelled.")
            sockets = list(self._sockets)
        for held in sockets:
            _shut(held)

    def check(self) -> None:
        with self._lock:
            if self._reason is not None:
                raise self._reason

    def hold(self, held: socket.socket) -> None:
        """Before it connects: from here on, cancelling wakes whoever waits for it."""
        with self._lock:
            self._sockets.append(held)
        self.check()

    def drop(self, held: socket.socket) -> None:
        with self._lock:
            self._sockets = [other for other in self._sockets if other is not held]


def _shut(held: socket.socket) -> None:
    """Not closed: another thread may be reading, and the number of a closed file is given to the
    next one that is opened. Past the TLS layer, which another thread may be in the middle of."""
    with suppress(OSError):
        socket.socket.shutdown(held, socket.SHUT_RDWR)
