"""What tests of terminals share: sockets by short name, processes in a container, the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil

from tests.e2e.sockets import SessionSocket
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from contextlib import ExitStack

    import docker

    from tests.e2e.scenario import User
    from tests.ground.server import RunningTrailer

Open = Callable[..., SessionSocket]


def opener(trailer: RunningTrailer, workspace: Any, stack: ExitStack) -> Open:
    def open_socket(kind: str, *, token: str | None = "", **query: Any) -> SessionSocket:
        key = trailer.token() if token == "" else token
        return stack.enter_context(
            SessionSocket(trailer, f"{workspace['id']}/{kind}", key, **query)
        )

    return open_socket


def commands(client: docker.DockerClient, name: str) -> list[str]:
    """What runs in a container."""
    top = client.api.top(f"trailer-{name}", "-o pid,args")
    return [row[1] for row in top["Processes"]]


def gone(client: docker.DockerClient, name: str, what: str, timeout: float = 10) -> None:
    eventually(
        lambda: not [c for c in commands(client, name) if what in c],
        timeout,
        f"{what} still runs in {name}",
    )


def made_user(user: User, name: str) -> str:
    """The token of a new user."""
    user.post("/users/", {"username": name, "password": "a long pass phrase 9"}, status=201)
    reply = user.trailer.session.post(
        f"{user.trailer.url}/api/v1/auth/token/",
        json={"username": name, "password": "a long pass phrase 9"},
        timeout=30,
    )
    assert reply.ok, reply.text
    return str(reply.json()["token"])


def agent_of(trailer: RunningTrailer) -> psutil.Process:
    children = psutil.Process(trailer.pid).children()
    return next(child for child in children if "agent" in child.cmdline())
