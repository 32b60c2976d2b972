"""The whole product as its users start it: `manage.py standalone` in a process of its own.

TRAILER_TEST_SERVER=production runs any test on the processes of a deployment instead, and
TRAILER_TEST_SERVER=containers on deploy/compose.yaml itself; see ways.py.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import requests

from tests.ground import process
from tests.ground.wait import eventually
from tests.ground.ways import Standalone, chosen

ROOT = Path(__file__).resolve().parents[2]
USERNAME = "admin"
PASSWORD = "correct horse battery staple"
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 60.0


class RunningTrailer:
    """A server with its own data folder and port, on the engine at `docker_host`.

    `env` adds to or overrides the settings, such as DATABASE_URL. The data folder stays over
    `restart` and goes with `destroy`. Its tables are there already, unless `from_nothing`.
    """

    def __init__(
        self,
        docker_host: str,
        env: Mapping[str, str] | None = None,
        *,
        from_nothing: bool = False,
        way: type[Standalone] | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="trailer-test-server-"))
        self.port = process.free_port()
        self.url = f"http://{process.LOOPBACK}:{self.port}"
        self.docker_host = docker_host
        self.env = dict(env or {})
        self.way = (way or chosen())(self.folder, self.port)
        if not from_nothing and "DATABASE_URL" not in self.env:
            self.way.begin()
        self.session = requests.Session()
        self._process: process.Child | None = None
        self._token = ""

    @property
    def pid(self) -> int:
        """Process number of the server."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    @property
    def has_front_door(self) -> bool:
        """Whether Caddy reads requests first, as in a deployment."""
        return self.way.has_front_door

    def processes(self) -> list[psutil.Process]:
        """All that the server is made of; the agent is none of them."""
        return self.way.processes(self.pid)

    def environment(self) -> dict[str, str]:
        """All that the server is told."""
        own = {
            "TRAILER_DATA_DIR": str(self.folder / "data"),
            "TRAILER_BIND": f"{process.LOOPBACK}:{self.port}",
            "TRAILER_ADMIN_USERNAME": USERNAME,
            "TRAILER_ADMIN_PASSWORD": PASSWORD,
            "DOCKER_HOST": self.docker_host,
            # No test but its own needs the image, which takes seconds of a core.
            "TRAILER_AGENT_BASE": "",
            "PYTHONUNBUFFERED": "1",
        }
        # Settings of whoever runs the tests must not reach the server under test.
        ours = ("TRAILER_", "DOCKER_", "DJANGO_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY")
        outer = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        return {**outer, **own, **self.way.settings(), **self.env}

    def start(self) -> Self:
        """Start the server and wait until it serves."""
        self._process = process.start(
            self.way.command,
            self.folder / "log",
            env=self.environment(),
            cwd=ROOT,
            own_group=True,
        )
        eventually(self._serves_or_ended, START_TIMEOUT_S, "the server does not serve")
        if not self._serves():
            raise RuntimeError(f"the server ended as it started:\n{self.log()}")
        return self

    def stop(self) -> int:
        """Stop it as Ctrl-C does, and return its exit status."""
        assert self._process is not None, "the server was never started"
        return process.stop(self._process, signal.SIGINT, STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Kill it outright."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.way.kill()

    def manage(self, *words: str) -> None:
        """Run a management command to its good end, on the server's own data."""
        self.way.manage(self.environment(), words)

    def restart(self) -> None:
        """Stop and start it with the same data and port."""
        self.stop()
        self.start()

    def destroy(self) -> None:
        """Stop it and remove its data."""
        self.session.close()
        if self._process is not None:
            self.stop()
            # A killed server may have left children; a group that is gone already is well.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self.way.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def token(self) -> str:
        """Return the administrator's token for the API, made at the first call."""
        if not self._token:
            reply = self.session.post(
                f"{self.url}/api/v1/auth/token/",
                json={"username": USERNAME, "password": PASSWORD},
                timeout=30,
            )
            assert reply.ok, f"no token: {reply.status_code} {reply.text}"
            self._token = reply.json()["token"]
        return self._token

    def api(
        self, method: str, path: str, json: Any = None, token: str | None = None
    ) -> requests.Response:
        """Call the API, as the administrator or with another token; `path` follows /api/v1."""
        return self.session.request(
            method,
            f"{self.url}/api/v1{path}",
            json=json,
            headers={"Authorization": f"Token {token or self.token()}"},
            timeout=60,
        )

    def log(self, lines: int = 200) -> str:
        """Return the end of what the server printed."""
        return process.tail(self.folder / "log", lines)

    def api_is_up(self) -> bool:
        """Whether it serves and has what it needs."""
        try:
            return self.session.get(f"{self.url}/readyz", timeout=5).ok
        except requests.RequestException:
            return False

    def _serves(self) -> bool:
        try:
            return self.session.get(f"{self.url}/healthz", timeout=2).ok
        except requests.RequestException:
            return False

    def _serves_or_ended(self) -> bool:
        return self._serves() or (self._process is not None and self._process.poll() is not None)
