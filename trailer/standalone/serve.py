"""Runs the web server in the main thread and ties the other parts' lives to it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from daphne.endpoints import build_endpoint_description_strings
from django.conf import settings
from django.core.management.base import CommandError
from twisted.internet import reactor
from twisted.internet.threads import deferToThread

from trailer.asgi import application
from trailer.celery import app as celery_app
from trailer.pacing import FOR_EVER, HANDSHAKE_SECONDS, PacedServer
from trailer.standalone.agent_image import AgentImageMaker
from trailer.standalone.agent_process import AgentProcess
from trailer.standalone.bootstrap import agent_state_dir, ensure_identity, ensure_local_host
from trailer.standalone.jobs import EmbeddedJobs
from workspaces.stacks.git.folder import folders_sweep
from workspaces.stacks.sync.lease import leases_forget

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


def require_free_address() -> None:
    """Before a first start makes its database and shows a password for nothing."""
    address, _, port = settings.TRAILER_BIND.rpartition(":")
    try:
        with socket.create_server(
            (address.strip("[]"), int(port)),
            family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        ):
            return
    except OSError as error:
        raise _cant_listen() from error


def serve(say: Callable[[str], None]) -> None:
    """Blocks until SIGINT or SIGTERM; workspaces go on running."""
    address, _, port = settings.TRAILER_BIND.rpartition(":")
    leases_forget()
    folders_sweep()
    jobs = EmbeddedJobs(celery_app, data_dir=settings.TRAILER_DATA_DIR)
    agent = _agent(address, port) if settings.TRAILER_EMBEDDED_AGENT else None

    maker = AgentImageMaker()

    def ready() -> None:
        jobs.start()
        maker.start()
        if agent is not None:
            agent.start()
        say(f"Trailer answers at {settings.TRAILER_PUBLIC_URL} (Ctrl-C to stop)")

    server = PacedServer(
        application=application,
        endpoints=build_endpoint_description_strings(host=address, port=int(port)),
        signal_handlers=False,
        ready_callable=ready,
        server_name="trailer",
        websocket_timeout=FOR_EVER,
        websocket_handshake_timeout=HANDSHAKE_SECONDS,
        application_close_timeout=5,
    )
    # Within the loop, which does not run yet.
    core: Any = reactor
    core.callLater(0, _stop_on_signals, core, [part for part in (agent, jobs, maker) if part])
    server.run()
    if not server.listening_addresses:
        raise _cant_listen()


def _cant_listen() -> CommandError:
    return CommandError(
        f"Can't listen on {settings.TRAILER_BIND}. Is something else using that port? "
        "Set TRAILER_BIND to another one."
    )


def _stop_on_signals(
    core: Any, parts: list[AgentProcess | EmbeddedJobs | AgentImageMaker]
) -> None:
    """First the parts, while everything is still answered: the agent's last reports arrive, and no
    job waits for a loop that is gone. The web server, told to stop, drops requests under way
    without a word, and an agent that waits for such an answer would not end."""
    loop = asyncio.get_running_loop()
    begun = threading.Event()

    def stop_parts() -> None:
        for part in parts:
            part.stop()

    def begin() -> None:
        if not begun.is_set():
            begun.set()
            deferToThread(stop_parts).addBoth(lambda _: core.stop())

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, begin)


def _agent(address: str, port: str) -> AgentProcess:
    state_dir = agent_state_dir()
    ensure_identity(ensure_local_host(), state_dir)
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(address, address)  # noqa: S104
    return AgentProcess(
        server_url=f"http://{reachable}:{port}", state_dir=state_dir, base_dir=settings.BASE_DIR
    )
