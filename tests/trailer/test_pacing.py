"""What waits between a client and its application, and who is held up meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from trailer.pacing import PacedCommand, PacedServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Application = Callable[..., Awaitable[None]]


class Client:
    """A request as the web server holds it: counts how often its reading was stopped."""

    def __init__(self) -> None:
        self.paused = 0
        self.resumed = asyncio.Event()

    def pause(self) -> None:
        self.paused += 1

    def resume(self) -> None:
        self.resumed.set()


def opened(application: Application) -> tuple[Client, Any, Any]:
    server = PacedServer(application, endpoints=["tcp:port=0"])
    server.connections = {}
    client = Client()
    server.protocol_connected(client)
    queue = server.create_application(client, {"type": "http"})
    return client, queue, server.connections[client]["application_instance"]


def chunk() -> dict[str, Any]:
    return {"type": "http.request", "body": b"x", "more_body": True}


async def test_a_client_waits_for_a_busy_application_and_goes_on_with_it() -> None:
    proceed = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await proceed.wait()
        for _ in range(20):
            await receive()

    client, queue, application = opened(slow)
    for _ in range(20):
        queue.put_nowait(chunk())
    assert (client.paused, client.resumed.is_set()) == (1, False)
    proceed.set()
    await application
    await asyncio.wait_for(client.resumed.wait(), 5)


async def test_nobody_waits_for_an_ended_application_to_read_what_it_left() -> None:
    """As many pieces in one packet as anybody likes, for a name that nobody has."""

    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        return

    client, queue, application = opened(refusing)
    for _ in range(20):
        queue.put_nowait(chunk())
    await application
    await asyncio.wait_for(client.resumed.wait(), 5)
    for _ in range(20):
        queue.put_nowait(chunk())
    assert client.paused == 1, "what comes now is dropped"


def test_a_socket_has_time_to_open_on_a_busy_machine_and_then_stays_open() -> None:
    given = PacedCommand().parser.parse_args(["trailer.asgi:application"])
    assert (given.websocket_connect_timeout, given.websocket_timeout) == (20, -1)
