"""What the engine's stream of events, and its silences, mean to the agent's parts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.loop.cycle import CycleLoop
    from agent.loop.guard import MetadataGuard
    from agent.loop.heartbeat import HeartbeatLoop
    from agent.loop.parts import Parts
    from agent.runtime.port import EngineEvent

log = logging.getLogger(__name__)

# Seconds until events of objects that are not ours lead to a look.
_STRANGER_PATIENCE = 0.5
# The same while builds run, which are strangers' events one after the other.
_BUILD_PATIENCE = 3.0


class EngineTurns:
    def __init__(
        self,
        parts: Parts,
        cycles: CycleLoop,
        heartbeat: HeartbeatLoop,
        *,
        guard: Callable[[], MetadataGuard | None],
    ) -> None:
        self._parts = parts
        self._cycles = cycles
        self._heartbeat = heartbeat
        self._guard = guard
        self._was_lost = False

    def connected(self, returned: bool) -> None:
        if returned:
            self._parts.failures.engine_is_back()
        if (guard := self._guard()) is not None and self._was_lost:
            guard.engine_returned()
        if self._was_lost:
            self._parts.addresses.engine_returned()
        self._was_lost = False
        self._parts.wake.request("engine", full=True)
        self._ask_engine()

    def _ask_engine(self) -> None:
        try:
            self._heartbeat.engine_is(self._parts.runtime.info())
        except EngineError as problem:
            log.warning("the engine does not say who it is: %s", problem)

    def lost(self, why: str) -> None:
        self._was_lost = True
        self._parts.ends.lost()
        if not self._cycles.trouble:
            log.error("the engine is away: %s", why)
            self._parts.wake.request("engine", full=True)

    def turned(self, answers: bool) -> None:
        if answers:
            # The event stream of a frozen engine goes on as if nothing were, and asks for no look.
            self._parts.failures.engine_is_back()
            self._parts.wake.request("engine", full=True)
        self._heartbeat.wake()

    def event(self, event: EngineEvent) -> None:
        """Our own writes come back as events: they ask for a closer look, not for a sooner one."""
        self._parts.ends.heard(event)
        if event.action == "kill":
            # What comes of it is an event of its own.
            return
        if event.kind == "daemon":
            # It has read its configuration again: there may be another runtime now.
            self._ask_engine()
            return
        wake = self._parts.wake
        self._parts.sessions.workspace_changed()
        key = f"workspace:{event.workspace_id}" if event.workspace_id else ""
        busy = self._parts.executor.busy_keys()
        # A commit pauses and wakes its container by itself.
        if (
            key in busy
            or key in self._parts.works.busy_keys()
            or (event.kind == "network" and busy)
        ):
            wake.note(event.container_id or event.id)
        elif event.workspace_id or (event.kind == "network" and self._may_be_ours(event)):
            wake.changed(event.container_id or event.id, "event")
        else:
            wake.note(event.container_id or event.id)
            building = self._parts.works.running_builds()
            wake.request_within("event", _BUILD_PATIENCE if building else _STRANGER_PATIENCE)

    def _may_be_ours(self, event: EngineEvent) -> bool:
        """The containers of a build's steps come and go on networks too."""
        known = self._parts.journal.view().containers.values()
        return not event.container_id or event.container_id in known
