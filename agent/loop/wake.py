"""Why the cycle loop should look, gathered from all threads until it does."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from agent import clock

# Engine events come in bursts: a moment's patience makes one look out of many.
COALESCE = 0.02


@dataclass(frozen=True, kw_only=True)
class Reasons:
    """`names` is empty when only time has passed."""

    names: tuple[str, ...] = ()
    changed_ids: frozenset[str] = frozenset()
    full: bool = False


class Wake:
    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._names: list[str] = []
        self._changed: set[str] = set()
        self._full = False
        self._urgent = False
        self._patient_until: float | None = None

    def request(self, name: str, *, full: bool = False) -> None:
        with self._condition:
            if name not in self._names:
                self._names.append(name)
            self._full = self._full or full
            self._urgent = True
            self._condition.notify_all()

    def note(self, container_id: str) -> None:
        """Something happened to an object we are busy with: look closer, but not sooner."""
        with self._condition:
            self._changed.add(container_id)

    def changed(self, container_id: str, name: str) -> None:
        with self._condition:
            self._changed.add(container_id)
        self.request(name)

    def request_within(self, name: str, seconds: float) -> None:
        """A look that may wait a little: strangers' business must not keep the agent busy."""
        with self._condition:
            if name not in self._names:
                self._names.append(name)
            if self._patient_until is None:
                self._patient_until = clock.monotonic() + seconds
            self._condition.notify_all()

    def wait(self, timeout: float | None) -> Reasons:
        with self._condition:
            deadline = None if timeout is None else clock.monotonic() + timeout
            while not self._urgent:
                now = clock.monotonic()
                limits = [at for at in (deadline, self._patient_until) if at is not None]
                if limits and min(limits) <= now:
                    return self._take()
                self._condition.wait(min(limits) - now if limits else None)
        clock.sleep(COALESCE)
        with self._condition:
            return self._take()

    def is_quiet(self) -> bool:
        with self._condition:
            return not self._urgent

    def _take(self) -> Reasons:
        reasons = Reasons(
            names=tuple(self._names), changed_ids=frozenset(self._changed), full=self._full
        )
        self._names, self._changed, self._full, self._urgent = [], set(), False, False
        self._patient_until = None
        return reasons
