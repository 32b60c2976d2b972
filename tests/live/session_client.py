"""A browser's end of a session socket, for tests of the consumers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from tests.factories import make_token
from tests.live.patient_socket import PatientSocket
from trailer.asgi import application

if TYPE_CHECKING:
    from collections.abc import Callable

    from trailer.accounts.models import User
    from workspaces.models import Workspace


async def open_session(
    kind: str, workspace: Workspace, user: User | None, query: str = "", *, scope: str = "write"
) -> PatientSocket:
    headers = []
    if user is not None:
        token = await sync_to_async(make_token)(user, scope=scope)
        headers = [(b"authorization", f"Token {token}".encode())]
    address = f"/ws/workspaces/{workspace.pk}/{kind}/?{query}"
    socket = PatientSocket(application, address, headers=headers)
    assert (await socket.connect())[0]
    return socket


async def words(socket: PatientSocket) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.receive_from(timeout=6))
    return message


async def code(socket: PatientSocket) -> int:
    """Of the closing, whatever comes before it."""
    while True:
        output = await socket.receive_output(timeout=6)
        if output["type"] == "websocket.close":
            return int(output["code"])


async def soon(predicate: Callable[[], object], what: str, seconds: float = 5.0) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not predicate():  # noqa: ASYNC110  any condition, not an event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(what) from None
