"""Sees to the rule against metadata addresses: as the server wants it, and still there."""

from __future__ import annotations

import logging
import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent import clock
from agent.clock import Backoff
from agent.errors import EngineError, GuardError
from agent.guard.decide import Act, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.guard.port import Guard
    from agent.store.database import Database

log = logging.getLogger(__name__)

LOOK: Final = 60.0
_META: Final = "metadata_guard"
_MADE: Final = "made"
_FORBIDDEN: Final = (
    "This host's policy does not allow metadata_guard, so its containers reach metadata addresses."
    " Ask the operator of this host."
)


@dataclass(frozen=True, kw_only=True)
class GuardState:
    """`state` is `blocked`, `open`, or empty while nothing is known; `message` is the trouble."""

    state: str = ""
    message: str = ""


class MetadataGuard:
    """`find` gives the way to the engine's packet filter, or says why there is none."""

    def __init__(
        self,
        find: Callable[[], Guard],
        *,
        database: Database,
        wanted: Callable[[], bool | None],
        is_allowed: bool,
        on_change: Callable[[], None],
    ) -> None:
        self._find = find
        self._database = database
        self._wanted = wanted
        self._is_allowed = is_allowed
        self._on_change = on_change
        self._guard: Guard | None = None
        self._set_at: float | None = None
        self._tried: bool | None = None
        self._not_before = 0.0
        self._backoff = Backoff(first=LOOK, limit=3600.0)
        self._woken = threading.Event()
        self.state = GuardState()

    def wake(self) -> None:
        self._woken.set()

    def engine_returned(self) -> None:
        """It may be on another network now, or its machine's rules were set anew with it."""
        self._guard = None
        self._set_at = None
        self._not_before = 0.0
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            self.look()
            self._woken.wait(LOOK)

    def look(self) -> None:
        wanted = self._wanted()
        if wanted and not self._is_allowed:
            wanted = False
        if wanted is not self._tried:
            self._tried, self._not_before = wanted, 0.0
            self._backoff.reset()
        if clock.monotonic() < self._not_before:
            return
        before = self.state
        try:
            self._see_to(wanted)
        except (GuardError, EngineError, sqlite3.Error) as problem:
            self._not_before = clock.monotonic() + self._backoff.next_delay()
            self.state = GuardState(state=before.state or "open", message=str(problem))
            if self.state != before:
                log.warning("%s", problem)
        else:
            self._backoff.reset()
        if self.state != before:
            self._on_change()

    def _see_to(self, wanted: bool | None) -> None:
        made = self._database.get_meta(_META) == _MADE
        act = decide(
            wanted=wanted,
            made=made,
            is_in_place=self._way().is_in_place() if wanted else None,
            age=None if self._set_at is None else clock.monotonic() - self._set_at,
        )
        if wanted and not made:
            # Before it is set, so that it is removed one day even after a crash right here.
            self._database.set_meta(_META, _MADE)
        if act is Act.PUT:
            self._way().put()
            is_news = self._set_at is None
            self._set_at = clock.monotonic()
            if is_news:
                log.info("containers of this machine do not reach metadata addresses from now on")
        elif act is Act.REMOVE:
            self._way().remove()
            self._set_at = None
            self._database.set_meta(_META, "")
            log.info("containers of this machine reach metadata addresses from now on")
        self.state = self._told(wanted)

    def _told(self, wanted: bool | None) -> GuardState:
        if wanted is None:
            return GuardState()
        if wanted:
            return GuardState(state="blocked")
        return GuardState(state="open", message=_FORBIDDEN if self._wanted() else "")

    def _way(self) -> Guard:
        # Another thread may forget it at any moment.
        guard = self._guard
        if guard is None:
            guard = self._guard = self._find()
        return guard
