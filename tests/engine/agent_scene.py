"""Short words of the agent's engine tests: workspaces that sleep, and what the engine shows."""

from collections.abc import Callable
from typing import Any

import docker
from docker.models.containers import Container

from agent.protocol.state import DesiredImage, DesiredWorkspace
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.engine.agent_process import AgentProcess
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

START = 20.0
Launch = Callable[..., AgentProcess]


def busybox(**fields: Any) -> DesiredImage:
    return image("bb", ref=BUSYBOX, **fields)


def sleeper(name: str = "web", **fields: Any) -> DesiredWorkspace:
    given = {"image_ref": BUSYBOX, "command": tuple(RUN_UNTIL_STOPPED), **fields}
    return workspace(name, **given)


def container(client: docker.DockerClient, name: str = "trailer-web") -> Container:
    return client.containers.get(name)


def state_of(client: docker.DockerClient, name: str = "trailer-web") -> tuple[str, str]:
    """(id, state) of a container; empty while there is none of that name."""
    listed = client.api.containers(all=True, filters={"name": f"^/{name}$"})
    return next(((str(c["Id"]), str(c["State"])) for c in listed), ("", ""))


def names(client: docker.DockerClient) -> set[str]:
    return {c["Names"][0].lstrip("/") for c in client.api.containers(all=True)}


def running(server: FakeServer, workspace_id: str = "w-web", revision: int = 1) -> None:
    def reached() -> bool:
        status = server.status(workspace_id)
        return status is not None and (status.status, status.revision) == ("running", revision)

    eventually(reached, START, f"{workspace_id} does not run: {server.status(workspace_id)}")


def new_running_container(client: docker.DockerClient, old_id: str) -> str:
    def found() -> str:
        listed = client.api.containers(filters={"name": "^/trailer-web$", "status": "running"})
        return next((str(c["Id"]) for c in listed if c["Id"] != old_id), "")

    return eventually(found, START, "no new container")
