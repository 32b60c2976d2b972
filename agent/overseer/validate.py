"""`python -m agent validate`: a trial that signs in and reads, and changes nothing anywhere.

It opens no session: that would end the one of the agent at work.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.errors import AgentError
from agent.store.document import read_document

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from agent.health import HealthFile
    from agent.server.port import Server

log = logging.getLogger(__name__)
_AGAIN = 2.0


def validate(
    server: Server,
    *,
    host_id: str,
    engine_answers: Callable[[], object],
    health: HealthFile,
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            engine_answers()
            read_document(server.check().body, host_id=host_id)
        except AgentError as problem:
            log.warning("not yet: %s", problem)
            health.signed_in(False)
        else:
            health.looked()
            health.signed_in(True)
        stop.wait(_AGAIN)
