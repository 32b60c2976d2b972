"""`python -m tests.ground.production_set`: the processes of deploy/compose.yaml on this machine.

It reads the settings that `manage.py standalone` reads, and ends and dies as that does, so that
every test of the running product can run on either. PostgreSQL and Redis are its own unless
DATABASE_URL and REDIS_URL name others; its database outlives a restart in the data folder.
"""

import os
import sys
from functools import partial
from pathlib import Path

import requests

from tests.ground import front_door, process
from tests.ground.postgres import URL_FILE, PrivatePostgres
from tests.ground.redis import PrivateRedis
from tests.ground.wait import eventually
from trailer.domains import default_url_domain
from trailer.standalone.agent_process import AgentProcess

ROOT = Path(__file__).resolve().parents[2]
RESTARTING = "tests.ground.restarting"
_WEB = ("--preload", "--no-control-socket")
_PREPARE = """
import django
django.setup()
from django.core.management import call_command
from trailer.standalone import bootstrap
call_command("prepare")
if {agent}:
    bootstrap.ensure_identity(bootstrap.ensure_local_host(), bootstrap.agent_state_dir())
"""


class ProductionSet:
    """Web, sockets, worker, beat, what they share, Caddy in front, and the local agent."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._data = Path(settings["TRAILER_DATA_DIR"])
        self._data.mkdir(parents=True, exist_ok=True)
        address, _, port = settings["TRAILER_BIND"].rpartition(":")
        self._port = int(port)
        public = settings.get("TRAILER_PUBLIC_URL", f"http://{address}:{port}")
        self._url_domain = settings.get("TRAILER_URL_DOMAIN") or default_url_domain(public)
        self._with_agent = settings.get("TRAILER_EMBEDDED_AGENT", "1") == "1"
        self._env = {
            **settings,
            "DJANGO_SETTINGS_MODULE": "trailer.settings",
            "TRAILER_BEHIND_PROXY": "1",
        }
        self._children: list[process.Child] = []
        self._services: list[PrivatePostgres | PrivateRedis] = []
        self._agent: AgentProcess | None = None

    def start(self) -> None:
        if "DATABASE_URL" not in self._env:
            # PostgreSQL runs as a user of its own and has to get at its folder below.
            self._data.parent.chmod(0o711)
            postgres = PrivatePostgres(self._data.parent / "postgres")
            self._services.append(postgres.start())
            self._env["DATABASE_URL"] = postgres.url
            (self._data.parent / URL_FILE).write_text(postgres.url)
        if "REDIS_URL" not in self._env:
            redis = PrivateRedis(self._data.parent / "redis")
            self._services.append(redis.start())
            self._env["REDIS_URL"] = redis.url
        os.environ.update(self._env)
        code = _PREPARE.format(agent=self._with_agent)
        if self._begin([sys.executable, "-c", code]).wait(120) != 0:
            raise SystemExit("prepare failed")
        web, sockets = process.free_port(), process.free_port()
        for command in commands(web, sockets, self._data):
            restarting = [sys.executable, "-m", RESTARTING] if "worker" in command else []
            self._begin([*restarting, *command])
        for port in (web, sockets):
            eventually(partial(process.accepts_connections, port), 120, "no server")
        text = front_door.rules(
            port=self._port,
            url_domain=self._url_domain,
            web=f"{process.LOOPBACK}:{web}",
            sockets=f"{process.LOOPBACK}:{sockets}",
        )
        self._begin(front_door.command(self._data, text))
        eventually(self._is_ready, 60, "the deployment is not ready", interval=0.5)
        if self._with_agent:
            self._agent = AgentProcess(
                server_url=f"http://{process.LOOPBACK}:{self._port}",
                state_dir=self._data / "agent",
                base_dir=ROOT,
            )
            self._agent.start()

    def _is_ready(self) -> bool:
        """As a load balancer asks; on a busy machine the first answers are late."""
        try:
            place = f"{process.LOOPBACK}:{self._port}"
            return requests.get(f"http://{place}/readyz", timeout=10).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        """The agent first, while everything still answers."""
        if self._agent is not None:
            self._agent.stop()
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        for child in self._children:
            process.stop(child, timeout=10)
        for service in self._services:
            service.stop()

    def _begin(self, command: list[str | Path]) -> process.Child:
        child = process.start(command, self._data.parent / "log", env=self._env, cwd=ROOT)
        self._children.append(child)
        return child


def commands(web: int, sockets: int, data: Path) -> list[list[str | Path]]:
    """As in deploy/compose.yaml, on ports of this machine and with fewer web processes."""
    python: list[str | Path] = [sys.executable, "-m"]
    celery: list[str | Path] = [*python, "celery", "-A", "trailer.celery"]
    where = f"{process.LOOPBACK}:{web}"
    listen: list[str | Path] = ["-b", process.LOOPBACK, "-p", str(sockets)]
    return [
        [*python, "gunicorn", *_WEB, "-b", where, "-w", "2", "--threads", "4", "trailer.wsgi"],
        [*python, "trailer.pacing", *listen, "trailer.asgi:application"],
        [*celery, "worker", "-P", "threads", "-c", "6", "--without-mingle", "--without-gossip"],
        [*celery, "beat", "-s", str(data / "schedule")],
    ]


if __name__ == "__main__":
    process.run_until_signalled(ProductionSet(dict(os.environ)))
