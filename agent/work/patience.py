"""Cuts work off that takes too long as a whole, or says nothing for too long."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from agent import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Patience:
    """`on_end` is called once, from a thread of its own, with `timeout` or `idle`."""

    def __init__(self, *, total: float, idle: float, on_end: Callable[[str], None]) -> None:
        self._idle = idle
        self._on_end = on_end
        self._until = clock.monotonic() + total
        self._heard_at = clock.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="patience", daemon=True)

    def heard(self) -> None:
        self._heard_at = clock.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()

    def _watch(self) -> None:
        while True:
            now = clock.monotonic()
            if now >= self._until:
                self._on_end("timeout")
                return
            quiet_until = self._heard_at + self._idle
            if now >= quiet_until:
                self._on_end("idle")
                return
            if self._over.wait(min(self._until, quiet_until) - now):
                return
