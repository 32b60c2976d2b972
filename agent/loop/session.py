"""The agent's session: its epoch, and what the loops do when the server says no."""

from __future__ import annotations

import logging
import platform
import threading
from typing import TYPE_CHECKING

from agent.errors import EngineError, Revoked, ServerError, ServerUnavailable
from agent.host_facts import capabilities
from agent.protocol import PROTOCOL_VERSION
from agent.protocol.session import SessionRequest
from agent.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.clock import Backoff
    from agent.loop.target import Target
    from agent.runtime.port import Runtime
    from agent.server.port import Server

log = logging.getLogger(__name__)
_REVOKED_PAUSE = 300.0


class Session:
    """`epoch` is 0 until the server has opened a session."""

    def __init__(
        self,
        server: Server,
        runtime: Runtime,
        target: Target,
        *,
        on_open: Callable[[], None],
        on_signed_in: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._runtime = runtime
        self._target = target
        self._on_open = on_open
        self.signed_in = on_signed_in
        self._epoch = 0
        self.opened = threading.Event()

    def epoch(self) -> int:
        return self._epoch

    def open(self) -> None:
        reply = self._server.open_session(
            SessionRequest(
                agent_version=VERSION,
                protocol=PROTOCOL_VERSION,
                engine_id=self._engine_id(),
                hostname=platform.node(),
                capabilities=capabilities(),
            )
        )
        self._target.apply_settings(reply.settings)
        self._epoch = reply.epoch
        log.info("session open: host %r epoch %d", reply.host_name, reply.epoch)
        self.signed_in(True)
        self._on_open()
        self.opened.set()

    def _engine_id(self) -> str:
        try:
            return self._runtime.info().id
        except EngineError:
            return ""


def pause_after(problem: ServerError, backoff: Backoff) -> float:
    """How long a loop leaves the server alone; an endpoint's own wish comes first."""
    if isinstance(problem, Revoked):
        log.error("the server does not accept this agent's token: %s", problem)
        return _REVOKED_PAUSE
    delay = backoff.next_delay()
    if isinstance(problem, ServerUnavailable) and problem.retry_after is not None:
        return max(delay, problem.retry_after)
    return delay
