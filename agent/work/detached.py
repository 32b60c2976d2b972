"""A call that cannot be cut, in a thread of its own: whoever waits for it stays free to go."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")


class Detached(Generic[Value]):
    """The thread is a daemon: it never holds back the end of the process."""

    def __init__(self, call: Callable[[], Value], *, name: str) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._values: list[Value] = []
        self._problem: Exception | None = None
        self._left: Callable[[Value], None] | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        try:
            value = self._call()
        except Exception as problem:  # noqa: BLE001  raised where somebody waits for it
            self._problem = problem
        else:
            with self._lock:
                self._values.append(value)
                left = self._left
            if left is not None:
                left(value)
        self._over.set()

    def wait(self, seconds: float) -> bool:
        """True once the call is over."""
        return self._over.wait(seconds)

    def result(self) -> Value:
        """Only after it is over; raises what the call raised."""
        if self._problem is not None:
            raise self._problem
        return self._values[0]

    def leave(self, dispose: Callable[[Value], None]) -> None:
        """Nobody waits any more: whatever comes, or has just come, is disposed of."""
        with self._lock:
            self._left = dispose
            come = list(self._values)
        for value in come:
            dispose(value)
