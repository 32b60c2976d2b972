"""Who may begin: a few of each kind at a time, in order of arrival, nothing on a full disk."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.work.port import Work


class Lanes:
    """Pulls, builds and snapshots never wait for each other, only for their own kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Work]] = {}
        self._at_work: dict[str, int] = {}

    def put(self, work: Work) -> None:
        with self._lock:
            self._waiting.setdefault(work.lane, deque()).append(work)

    def is_waiting(self, work: Work) -> bool:
        with self._lock:
            return work in self._waiting.get(work.lane, ())

    def withdraw(self, work: Work) -> bool:
        """False when it has begun already."""
        with self._lock:
            waiting = self._waiting.get(work.lane, deque())
            if work not in waiting:
                return False
            waiting.remove(work)
            return True

    def take(self, *, places: int, urgent_only: bool = False) -> list[Work]:
        """Those whose turn it is; each is `done` later."""
        begun: list[Work] = []
        with self._lock:
            for lane, waiting in self._waiting.items():
                ready = [work for work in waiting if work.is_urgent or not urgent_only]
                free = max(1, places) - self._at_work.get(lane, 0)
                for work in ready[: max(0, free)]:
                    waiting.remove(work)
                    self._at_work[lane] = self._at_work.get(lane, 0) + 1
                    begun.append(work)
        return begun

    def done(self, work: Work) -> None:
        with self._lock:
            self._at_work[work.lane] -= 1

    def waiting(self) -> list[Work]:
        with self._lock:
            return [work for waiting in self._waiting.values() for work in waiting]
