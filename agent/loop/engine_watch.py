"""Whether the engine answers: a ping every two seconds, in a thread of its own.

The verdict is made of pings alone. A slow call proves nothing (a graceful stop takes as long as
the workspace likes), and a frozen engine makes none fail for a long time. The worst case from the
engine's last answer to the verdict is PERIOD + MISSES * DEADLINE = 4.4 seconds.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.runtime.port import Runtime

log = logging.getLogger(__name__)

PERIOD = 2.0
DEADLINE = 1.2
MISSES = 2


@dataclass(frozen=True, kw_only=True)
class EngineVerdict:
    """`since` is None until the first verdict, empty while the engine answers, and otherwise the
    time of the first ping that it missed; `message` says in words what is wrong."""

    since: str | None = None
    message: str = ""


class EngineWatch:
    """`on_turn` gets False when the engine falls silent, and True when it answers again."""

    def __init__(self, runtime: Runtime, *, on_turn: Callable[[bool], None]) -> None:
        self._runtime = runtime
        self._on_turn = on_turn
        self._missed = 0
        self._missed_since = ""
        self.verdict = EngineVerdict()
        # Set with the first verdict.
        self.known = threading.Event()

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(self.look()):
            pass

    def look(self) -> float:
        """One ping; returns the seconds until the next one. After a miss that is what is left of
        the deadline, so that an engine that refuses at once has time to come back."""
        begun, at = clock.monotonic(), clock.timestamp()
        try:
            self._runtime.ping(deadline=DEADLINE)
        except EngineError as problem:
            self._miss(str(problem), at)
            pause = DEADLINE
        else:
            self._answered()
            pause = PERIOD
        return max(0.0, begun + pause - clock.monotonic())

    def _miss(self, message: str, at: str) -> None:
        self._missed += 1
        self._missed_since = self._missed_since or at
        if self._missed < MISSES and self.known.is_set():
            return
        turned = not self.verdict.since
        self.verdict = EngineVerdict(since=self._missed_since, message=message)
        self.known.set()
        if turned:
            log.error("the engine does not answer: %s", message)
            self._on_turn(False)

    def _answered(self) -> None:
        was_silent = bool(self.verdict.since)
        self._missed, self._missed_since = 0, ""
        self.verdict = EngineVerdict(since="")
        self.known.set()
        if was_silent:
            log.info("the engine answers again")
            self._on_turn(True)
