"""The report loop: drains the outbox in batches and resends until the server has accepted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.clock import Backoff
from agent.errors import ServerError, Superseded
from agent.loop.session import pause_after
from agent.protocol.report import Report

if TYPE_CHECKING:
    import threading

    from agent.loop.session import Session
    from agent.server.port import Server
    from agent.store.outbox import Outbox

log = logging.getLogger(__name__)
BATCH = 200


class ReportLoop:
    def __init__(self, *, server: Server, session: Session, outbox: Outbox) -> None:
        self._server = server
        self._session = session
        self._outbox = outbox

    def run(self, stop: threading.Event) -> None:
        backoff = Backoff(first=0.5, limit=60.0)
        while not stop.is_set():
            if not self._session.opened.wait(0.2) or not self._outbox.wait(1.0):
                continue
            try:
                self.drain()
            except Superseded:
                raise
            except ServerError as problem:
                log.warning("reports wait: %s", problem)
                stop.wait(pause_after(problem, backoff))
                continue
            backoff.reset()

    def drain(self) -> None:
        """Send until nothing is left; what the server refuses for good is dropped with a line."""
        while items := self._outbox.take(BATCH):
            reply = self._server.report(Report(epoch=self._session.epoch(), items=items))
            for seq, why in reply.refused.items():
                log.error("report %s refused: %s", seq, why)
            accepted = set(reply.accepted) | {int(seq) for seq in reply.refused}
            self._outbox.accept(accepted)
            if not accepted & {item.seq for item in items}:
                # Nothing moved: asking again at once would only be noise.
                raise ServerError("The server accepted none of the reports.")
