"""A deployment from deploy/compose.yaml on a machine that is a host too, and two more hosts."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

from docker.errors import APIError

from tests.e2e.scenario import User
from tests.ground.compose_images import AGENT, ensure_agent, ensure_compose_images
from tests.ground.compose_project import ComposeProject
from tests.ground.engine import PrivateEngine
from tests.ground.hostnet import lead_gateway_to_loopback
from tests.ground.images import BUSYBOX, ensure_images
from tests.ground.process import LOOPBACK
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.ground.gitserver import GitServer

DOMAIN = "trailer.internal"
AUTHORITY = "/data/caddy/pki/authorities/local/root.crt"
IN_THE_AGENT = "/etc/trailer-authority.crt"
HERE, NORTH, SOUTH = "here", "north", "south"


class ComposeTrailer(RunningTrailer):
    """The server behind Caddy, by its name and over TLS."""

    def __init__(self, engine: PrivateEngine, git: GitServer) -> None:
        super().__init__(engine.url)
        self.url = f"https://{DOMAIN}"
        self.engine = engine
        self.authority = self.folder / "authority.crt"
        self.settings = {
            "TRAILER_DOMAIN": DOMAIN,
            "TRAILER_ADMIN_USERNAME": USERNAME,
            "TRAILER_ADMIN_PASSWORD": PASSWORD,
            "TRAILER_WEB_WORKERS": "2",
            "TRAILER_GIT_ALLOW": f"http://{engine.host.gateway}:{git.port}",
        }
        # What docs/install.md tells whoever has an authority of their own; this machine's engine
        # has its socket elsewhere.
        self.changes = f"""
services:
  agent:
    extra_hosts: ["{DOMAIN}:{engine.address}"]
    environment: {{SSL_CERT_FILE: {IN_THE_AGENT}}}
    volumes:
      - {self.authority}:{IN_THE_AGENT}:ro
      - {engine.socket}:/var/run/docker.sock
"""
        self.project = ComposeProject("trailer", engine.url, self.folder)
        self.project.configure(self.settings, self.changes)

    def start(self) -> Self:
        self.project.up()
        eventually(self._has_authority, 30, "Caddy makes no authority")
        self.session.verify = str(self.authority)
        eventually(self._serves, 60, "Caddy does not answer")
        return self

    def start_agent(self, token: str) -> None:
        self.settings["TRAILER_ENROLMENT_TOKEN"] = token
        self.project.configure(self.settings, self.changes)
        self.project.up("--profile", "agent")

    def destroy(self) -> None:
        """The engine goes, and everything with it."""
        self.session.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, lines: int = 60) -> str:
        return self.project.logs(lines)

    def _has_authority(self) -> bool:
        """Caddy makes it after its start."""
        with suppress(RuntimeError):
            self.project.run("cp", f"proxy:{AUTHORITY}", str(self.authority))
        return self.authority.exists()


class Deployment:
    """Three machines. `hosts` has the ids by name."""

    def __init__(self, git: GitServer) -> None:
        self.git = git
        self.engines = {name: PrivateEngine() for name in (HERE, NORTH, SOUTH)}
        self.hosts: dict[str, str] = {}

    @contextmanager
    def started(self) -> Iterator[None]:
        for name, engine in self.engines.items():
            engine.create()
            with closing(engine.client(timeout=300)) as client:
                ensure_images(client)
                ensure_compose_images(client) if name == HERE else ensure_agent(client)
        lead_gateway_to_loopback(self.engines[HERE].host)
        self.trailer = ComposeTrailer(self.engines[HERE], self.git)
        with leads_to(self.engines[HERE].address, self.trailer.authority):
            self.trailer.start()
            self.user = User(self.trailer)
            self._enrol()
            yield

    def _enrol(self) -> None:
        for name in self.engines:
            body = {"name": name, "heartbeat_interval": 1, "reconcile_interval": 1}
            self.hosts[name] = self.user.post("/hosts/", body, status=201)["id"]
        self.trailer.start_agent(self.enrolment(HERE)["token"])
        for name in (NORTH, SOUTH):
            self._paste(self.engines[name], self.enrolment(name)["command"])

    def destroy(self) -> None:
        with suppress(AttributeError):
            self.trailer.destroy()
        for engine in self.engines.values():
            engine.destroy()

    def enrolment(self, name: str) -> Any:
        return self.user.post(f"/hosts/{self.hosts[name]}/enrolment/", status=201)

    def _paste(self, engine: PrivateEngine, line: str) -> None:
        """As on the host itself, with what docs/install.md adds for a private authority."""
        words = shlex.split(line)
        assert (words[:2], words[-1]) == (["docker", "run"], AGENT)
        place = f"{engine.socket}:/var/run/docker.sock"
        words = [w.replace("/var/run/docker.sock:/var/run/docker.sock", place) for w in words]
        more = ["--add-host", f"{DOMAIN}:{self.engines[HERE].address}"]
        more += ["-v", f"{self.trailer.authority}:{IN_THE_AGENT}:ro"]
        more += ["-e", f"SSL_CERT_FILE={IN_THE_AGENT}"]
        subprocess.run(
            ["docker", "-H", engine.url, "run", *more, *words[2:]],
            check=True,
            capture_output=True,
            text=True,
        )

    def seen_from_inside(self, url: str) -> str:
        """Where the containers find what listens on this machine's loopback."""
        return url.replace(LOOPBACK, self.engines[HERE].host.gateway)

    def workspace(self, host: str, name: str, image: str = BUSYBOX, **fields: Any) -> Any:
        """A new one with an image that its host has."""
        where = {"host": self.hosts[host]}
        pulled = {"name": f"for-{name}", "kind": "pull", "reference": image, **where}
        made = self.user.post("/images/", pulled, status=201)
        body = {"name": name, "image": made["id"], "drain_timeout": 2, **where, **fields}
        return self.user.post("/workspaces/", body, status=201)

    def names(self, host: str) -> set[str]:
        """All containers there."""
        with closing(self.engines[host].client()) as client:
            rows = client.api.containers(all=True)
            return {name.lstrip("/") for row in rows for name in row["Names"]}

    def wait_replaced(self, name: str) -> None:
        """The pasted agent has given way to the one that the host's overseer made of it."""

        def replaced() -> bool:
            names = [row["Names"] for row in self.agents(name)]
            assert names == [["/trailer-agent"]], names
            return "trailer.created-at" in self.agents(name)[0]["Labels"]

        eventually(replaced, 90, f"the agent of {name} was not replaced", 0.3)

    def count_processes(self, service: str, what: str) -> int:
        told = self.trailer.project.run("top", service)
        return sum(what in line for line in told.splitlines())

    def story(self) -> str:
        """What the agents wrote, for the message of a failure."""
        lines = []
        for name, engine in self.engines.items():
            with closing(engine.client()) as client:
                for row in self.agents(name):
                    with suppress(APIError):
                        text = client.api.logs(row["Id"], tail=15).decode(errors="replace")
                        lines.append(f"{name}: {row['Names']} {row['Status']}\n{text}")
        return "\n".join(lines)

    def statuses(self) -> dict[str, str]:
        return {host["name"]: host["status"] for host in self.user.get("/hosts/")["results"]}

    def agents(self, name: str) -> list[Any]:
        """All containers of a host that have to do with its agent."""
        with closing(self.engines[name].client()) as client:
            found: list[Any] = client.api.containers(all=True, filters={"name": "trailer-agent"})
            return found


@contextmanager
def leads_to(address: str, authority: Path) -> Iterator[None]:
    """For this process the deployment's names lead to its machine and its authority is known."""
    found = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **named: Any) -> Any:
        ours = isinstance(host, str) and f".{host}".endswith(f".{DOMAIN}")
        return found(address if ours else host, *rest, **named)

    known = {"SSL_CERT_FILE": str(authority), "REQUESTS_CA_BUNDLE": str(authority)}
    with mock.patch.object(socket, "getaddrinfo", look_up), mock.patch.dict("os.environ", known):
        yield
