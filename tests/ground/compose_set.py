"""`python -m tests.ground.compose_set`: deploy/compose.yaml in containers on a private engine.

It reads the settings that `manage.py standalone` reads, and ends as that does, so that every test
of the running product can run on it. The engine is that of TRAILER_TEST_MACHINE. Only the local
host's agent is a process here: tests remove every container of that host.
"""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import docker
import requests

from tests.ground import front_door, process
from tests.ground.compose_project import WORDS, ComposeProject
from tests.ground.hostnet import BASE, address_of, gateway_of, lead_loopback_out
from tests.ground.postgres import URL_FILE
from tests.ground.relay import Relay
from tests.ground.wait import eventually
from tests.ground.ways import project_name
from trailer.domains import default_url_domain
from trailer.standalone.agent_process import AgentProcess

ROOT = Path(__file__).resolve().parents[2]
SERVER = ("prepare", "web", "sockets", "worker", "beat")
RUNNING = {"proxy", "postgres", "redis", "web", "sockets", "worker", "beat"}
WEB_PROCESSES = 2
# Those that read repositories, which tests serve on the loopback of the test machine.
READERS = ("web", "worker")
# Of this process, not of the containers.
_OURS = {"TRAILER_DATA_DIR", "TRAILER_BIND", "TRAILER_EMBEDDED_AGENT", "TRAILER_TEST_MACHINE"}
_SERVER_USER = 10001


class ComposeSet:
    """The deployment, a relay from the port that was asked for, and the local agent."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._data = Path(settings["TRAILER_DATA_DIR"])
        self._data.mkdir(parents=True, exist_ok=True)
        os.chown(self._data, _SERVER_USER, _SERVER_USER)
        address, _, port = settings["TRAILER_BIND"].rpartition(":")
        self._port = int(port)
        # Where this machine's own programs find it.
        self._near = process.LOOPBACK if address == "0.0.0.0" else address
        self._database_port = process.free_port()
        self._public = settings.get("TRAILER_PUBLIC_URL", f"http://{address}:{port}")
        number = int(settings["TRAILER_TEST_MACHINE"])
        self._machine, self._gateway = address_of(number), gateway_of(number)
        self._engine_url = f"unix://{BASE / f'h{number}' / 'd.sock'}"
        name = project_name(self._port)
        self._project = ComposeProject(name, self._engine_url, self._data.parent)
        own = {"TRAILER_DOMAIN": "localhost", "TRAILER_WEB_WORKERS": str(WEB_PROCESSES)}
        self._project.configure(own, self._changes())
        self._relay = Relay((address, self._port), (self._machine, self._port))
        self._logs: process.Child | None = None
        self._agent: AgentProcess | None = None

    def start(self) -> None:
        self._project.up()
        self._logs = process.start(
            self._project.command("logs", "--follow", "--no-log-prefix", "--no-color"),
            self._data.parent / "log",
            env=self._project.environment(),
        )
        with closing(docker.DockerClient(base_url=self._engine_url)) as client:
            for name in READERS:
                found = client.containers.get(f"{self._project.name}-{name}-1")
                lead_loopback_out(found.attrs["State"]["Pid"], self._gateway, but=8000)
        # Every question that comes too early is a line in Caddy's log.
        eventually(self._answers, 120, "the deployment does not answer", interval=1)
        self._check_parts()
        (self._data.parent / URL_FILE).write_text(self._database_url())
        if self._settings.get("TRAILER_EMBEDDED_AGENT", "1") == "1":
            self._agent = self._local_agent()
            self._agent.start()
        self._relay.start()

    def stop(self) -> None:
        """The agent first, while everything still answers. What was stored stays."""
        if self._agent is not None:
            self._agent.stop()
        self._relay.stop()
        self._project.run("down", "--timeout", "10")
        if self._logs is not None:
            process.stop(self._logs)

    def _changes(self) -> str:
        """Plain HTTP on a port of its own, the settings of the test, and a folder it can read."""
        given = {
            name: text
            for name, text in self._settings.items()
            if name.startswith("TRAILER_") and name not in _OURS
        }
        name = urlsplit(self._public).hostname or ""
        given["TRAILER_PUBLIC_URL"] = self._public
        given["TRAILER_ALLOWED_HOSTS"] = f"localhost,127.0.0.1,{name}"
        given.setdefault("TRAILER_URL_DOMAIN", default_url_domain(self._public))
        rules = front_door.rules(
            port=80, url_domain=given["TRAILER_URL_DOMAIN"], web="web:8000", sockets="sockets:8000"
        )
        caddyfile = self._data.parent / "Caddyfile"
        caddyfile.write_text(rules)
        parts: dict[str, dict[str, object]] = {each: {"environment": given} for each in SERVER}
        for each in READERS:
            parts[each]["volumes"] = _repositories(given.get("TRAILER_GIT_ALLOW", ""))
        services = "".join(f"  {name}: {json.dumps(part)}\n" for name, part in parts.items())
        return f"""
services:
{services}
  postgres:
    ports: ["{self._database_port}:5432"]
  proxy:
    ports: !override ["{self._port}:80"]
    volumes: ["{caddyfile}:/etc/caddy/Caddyfile:ro"]
volumes:
  data: {{driver: local, driver_opts: {{type: none, o: bind, device: {self._data}}}}}
"""

    def _check_parts(self) -> None:
        """A suite that passes on less than the whole set would prove nothing."""
        rows = self._project.containers()
        running = {name for name, row in rows.items() if row["State"] == "running"}
        assert running == RUNNING, self._project.logs()
        listed = self._project.run("top", "web").splitlines()
        web = sum("gunicorn" in line for line in listed)
        assert web == 1 + WEB_PROCESSES, listed
        print(f"{self._project.name}: {', '.join(sorted(running))}; {web - 1} web processes")

    def _database_url(self) -> str:
        place = f"{self._machine}:{self._database_port}"
        return f"postgres://trailer:{WORDS['POSTGRES_PASSWORD']}@{place}/trailer"

    def _ask(self, method: str, path: str, **options: object) -> requests.Response:
        """By Caddy's own port: the relay opens when everything answers."""
        address = f"http://{self._machine}:{self._port}{path}"
        headers = {"Host": process.LOOPBACK, **options.pop("headers", {})}  # type: ignore[dict-item]
        return requests.request(method, address, headers=headers, timeout=30, **options)  # type: ignore[arg-type]

    def _answers(self) -> bool:
        try:
            # Caddy says 502 while there is nobody behind it.
            return (
                self._ask("GET", "/readyz").ok and self._ask("GET", "/ws/live/").status_code < 500
            )
        except requests.RequestException:
            return False

    def _local_agent(self) -> AgentProcess:
        folder = self._data / "agent"
        folder.mkdir(exist_ok=True)
        if not (folder / "identity.json").exists():
            os.environ["TRAILER_ENROLMENT_TOKEN"] = self._enrolment()
        return AgentProcess(
            server_url=f"http://{self._near}:{self._port}", state_dir=folder, base_dir=ROOT
        )

    def _enrolment(self) -> str:
        words = {
            "username": self._settings["TRAILER_ADMIN_USERNAME"],
            "password": self._settings["TRAILER_ADMIN_PASSWORD"],
        }
        token = self._ask("POST", "/api/v1/auth/token/", json=words).json()["token"]
        headers = {"Authorization": f"Token {token}"}
        body = {"name": "local", "description": "The engine of this machine."}
        host = self._ask("POST", "/api/v1/hosts/", json=body, headers=headers).json()["id"]
        path = f"/api/v1/hosts/{host}/enrolment/"
        return str(self._ask("POST", path, headers=headers).json()["token"])


def _repositories(allowed: str) -> list[str]:
    """Folders with repositories that the server may read are where they are here, too."""
    folders = [Path(urlsplit(each).path) for each in allowed.split(",") if "file:" in each]
    for folder in folders:
        # For the server's own user.
        folder.chmod(0o755)
    return [f"{folder}:{folder}:ro" for folder in folders]


if __name__ == "__main__":
    process.run_until_signalled(ComposeSet(dict(os.environ)))
