"""A host whose agent runs as a container, started by the line that the server gives."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, NotFound

from tests.e2e.scenario import User
from tests.ground.agent_image import ensure_agent_image
from tests.ground.server import RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    import docker

    from tests.ground.engine import PrivateEngine

AGENT = "trailer-agent"


class AgentHost:
    """One server, one engine, and the agent's container on it: of the tests' own image, or with
    `image=""` of the one that the server hands out."""

    def __init__(
        self,
        engine: PrivateEngine,
        image: str | None = None,
        server: RunningTrailer | None = None,
        **settings: str,
    ) -> None:
        self.engine = engine
        self.image = image
        if image is None:
            with closing(engine.client(timeout=300)) as client:
                self.image = ensure_agent_image(client)
        self.client: docker.DockerClient = engine.client()
        self.server = server or RunningTrailer(engine.url)
        address = f"http://{engine.host.gateway}:{self.server.port}"
        self.server.env.update(
            {
                "TRAILER_EMBEDDED_AGENT": "0",
                "TRAILER_BIND": f"0.0.0.0:{self.server.port}",
                "TRAILER_PUBLIC_URL": address,
                "TRAILER_AGENT_IMAGE": self.image or "",
                **settings,
            }
        )
        self.server.start()
        self.user = User(self.server)
        body = {"name": "far", "heartbeat_interval": 1, "reconcile_interval": 1}
        self.host_id: str = self.user.post("/hosts/", body, status=201)["id"]

    def close(self) -> None:
        self.client.close()
        self.server.destroy()

    def enrolment(self) -> Any:
        return self.user.post(f"/hosts/{self.host_id}/enrolment/", status=201)

    def paste(self, command: str, extra: Sequence[str] = ()) -> None:
        """As on the host itself; only the engine's socket lies elsewhere here."""
        self.last_command = command
        words = shlex.split(command)
        assert words[:2] == ["docker", "run"]
        socket = f"{self.engine.socket}:/var/run/docker.sock"
        words = [w.replace("/var/run/docker.sock:/var/run/docker.sock", socket) for w in words]
        subprocess.run(
            ["docker", "-H", self.engine.url, "run", *extra, *words[2:]],
            check=True,
            capture_output=True,
            text=True,
        )

    def host(self) -> Any:
        return self.user.get(f"/hosts/{self.host_id}/")

    def wait_online(self, timeout: float = 60) -> Any:
        def online() -> Any:
            host = self.host()
            return host if host["status"] == "online" else None

        return eventually(online, timeout, "the host is not online", 0.2)

    def agent(self) -> Any:
        """The agent's container under its one name; None while there is none."""
        try:
            return self.client.containers.get("trailer-agent")
        except NotFound:
            return None

    def names(self) -> set[str]:
        """Names of all containers that have to do with the agent."""
        listed = self.client.api.containers(all=True)
        return {n for raw in listed for n in map(_plain, raw["Names"]) if n.startswith(AGENT)}

    def wait_replaced(self, old_id: str, timeout: float = 90) -> Any:
        """The new agent's container, once nothing else of the replacement is left."""

        def replaced() -> Any:
            found = self.agent()
            alone = self.names() == {AGENT}
            return found if alone and found is not None and found.id != old_id else None

        return eventually(replaced, timeout, f"not replaced: {self.story()}", 0.3)

    def wants(self, image: str) -> None:
        self.user.patch(f"/hosts/{self.host_id}/", {"agent_image": image})

    def works(self) -> bool:
        """The one agent is healthy by its own word."""
        found = self.agent()
        if found is None or found.status != "running":
            return False
        return bool(found.exec_run(["python3", "-m", "agent", "health"]).exit_code == 0)

    def story(self) -> str:
        """What the agent's containers wrote, for the message of a failure."""
        lines = []
        for raw in self.client.api.containers(all=True):
            if _plain(raw["Names"][0]).startswith(AGENT):
                with suppress(APIError):
                    text = self.client.api.logs(raw["Id"], tail=15).decode(errors="replace")
                    lines.append(f"{raw['Names']} {raw['Status']}\n{text}")
        return "\n".join(lines)


def _plain(name: str) -> str:
    return name.lstrip("/")
