"""Calls an overseer when the agent's own container is not the one that is wanted."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import EngineError
from agent.overseer.spawn import reason_to_spawn
from agent.protocol.naming import LABEL_AGENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.overseer.order import Order
    from agent.overseer.port import AgentEngine
    from agent.overseer.spawn import Self

log = logging.getLogger(__name__)
_LOOK = 15.0
# An overseer that ends without a result is not called again at once for the same.
_REST = 60.0


class SelfWatch:
    """Asks the engine only at the start, while an overseer is at work, and to call one."""

    def __init__(
        self,
        engine: AgentEngine,
        *,
        own_id: str,
        order: Callable[[], Order],
        answered: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._own_id = own_id
        self._order = order
        self._answered = answered
        self._own: Self | None = None
        self._must_look = True
        self._maintained = False
        self._spawned_at = float("-inf")
        self._spawned_for = ""
        self._woken = threading.Event()

    @property
    def image(self) -> str:
        return self._own.image if self._own else ""

    @property
    def image_id(self) -> str:
        return self._own.image_id if self._own else ""

    def wake(self) -> None:
        self._woken.set()

    def maintenance_ended(self) -> None:
        self._maintained = True
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            try:
                if not self.look():
                    return
            except EngineError as problem:
                log.warning("the agent's own container cannot be looked at: %s", problem)
            self._woken.wait(_LOOK)

    def look(self) -> bool:
        """False when this agent is none that an overseer can replace."""
        own = self._own = self._own or self._engine.describe(self._own_id)
        if own.labels.get(LABEL_AGENT) != "true":
            log.warning("without the label %s=true no overseer replaces this agent", LABEL_AGENT)
            return False
        leftovers = False
        if self._must_look:
            if self._engine.overseer_state() == "running":
                return True
            self._engine.remove_overseer()
            world = self._engine.world()
            leftovers = world.next is not None or world.previous is not None
            self._must_look = False
        why = reason_to_spawn(
            own,
            order=self._order(),
            answered=self._answered(),
            leftovers=leftovers,
            maintained=self._maintained,
        )
        if why and self._may_spawn(why):
            self._spawn(own, why)
        elif leftovers:
            self._must_look = True
        return True

    def _may_spawn(self, why: str) -> bool:
        return why != self._spawned_for or clock.monotonic() - self._spawned_at >= _REST

    def _spawn(self, own: Self, why: str) -> None:
        self._must_look = True
        self._spawned_at, self._spawned_for = clock.monotonic(), why
        if self._engine.spawn(own.id):
            log.info("called an overseer: %s", why)
            self._maintained = False
        else:
            log.info("an overseer is there already")
