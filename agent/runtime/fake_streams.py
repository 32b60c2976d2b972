"""Streams of the in-memory engine: output of a pull or build, and its events."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from agent.runtime.port import EngineEvent, Output


class FakeStream(Iterator[Output]):
    def __init__(self, items: list[Output], *, endless: bool = False) -> None:
        self._items = iter(items)
        self._endless = endless
        self._closed = threading.Event()

    def __next__(self) -> Output:
        try:
            return next(self._items)
        except StopIteration:
            if self._endless:
                self._closed.wait()
            raise

    def close(self) -> None:
        self._closed.set()


class FakeEvents(Iterator[EngineEvent]):
    def __init__(self) -> None:
        self.queue: queue.Queue[EngineEvent | None] = queue.Queue()

    def __next__(self) -> EngineEvent:
        event = self.queue.get()
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        self.queue.put(None)
