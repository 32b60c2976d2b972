"""The poll loop: opens the session and asks for the state document; a nudge only asks sooner."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from agent.clock import Backoff
from agent.errors import RejectedDocument, Revoked, ServerError, Superseded
from agent.loop.session import pause_after
from agent.store.document import read_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.loop.session import Session
    from agent.loop.target import Target
    from agent.server.port import Server

log = logging.getLogger(__name__)


class PollLoop:
    """Writes the target, calls `on_change` when it moved; never touches the engine."""

    def __init__(
        self,
        *,
        server: Server,
        session: Session,
        target: Target,
        host_id: str,
        on_change: Callable[[], None],
        on_rejected: Callable[[str], None],
    ) -> None:
        self._server = server
        self._session = session
        self._target = target
        self._host_id = host_id
        self._on_change = on_change
        self._on_rejected = on_rejected
        self._nudged = threading.Event()
        self._rejected_etag = ""

    def nudge(self) -> None:
        self._nudged.set()

    def run(self, stop: threading.Event) -> None:
        backoff = Backoff(first=1.0, limit=60.0)
        while not stop.is_set():
            self._nudged.clear()
            try:
                self.poll()
            except Superseded:
                raise
            except ServerError as problem:
                log.warning("state not fetched: %s", problem)
                if isinstance(problem, Revoked):
                    self._session.signed_in(False)
                # A nudge proves that the server is back: it may end the pause.
                self._nudged.wait(pause_after(problem, backoff))
                continue
            backoff.reset()
            self._session.signed_in(True)
            self._nudged.wait(self._target.settings().reconcile_interval)

    def poll(self) -> None:
        """One question. A document that cannot be followed changes nothing."""
        if not self._session.epoch():
            self._session.open()
        fetched = self._server.fetch_state(
            epoch=self._session.epoch(), etag=self._rejected_etag or self._target.etag
        )
        if fetched is None:
            return
        try:
            state = read_document(fetched.body, host_id=self._host_id)
        except RejectedDocument as problem:
            log.error("state refused: %s", problem)
            self._rejected_etag = fetched.etag
            self._on_rejected(str(problem))
            return
        self._rejected_etag = ""
        self._target.accept(state, etag=fetched.etag)
        self._on_change()
