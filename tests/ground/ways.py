"""The ways in which tests run the product: what starts each, and how it is seen, killed, managed.

TRAILER_TEST_SERVER chooses one for a whole test run; `standalone` is what it is without.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import psutil
from docker.errors import APIError

from tests.ground.compose_machine import server_machine
from tests.ground.compose_project import ComposeProject
from tests.ground.postgres import URL_FILE, PrivatePostgres, takes_connections
from tests.ground.template import copy_migrated_database

ROOT = Path(__file__).resolve().parents[2]
# What serves; PostgreSQL's processes come and go with its clients.
_SERVING = ("proxy", "web", "sockets", "worker", "beat")
# docs/backup.md: root may write where the backup goes, the server's own user reads the keys.
_MANAGE = 'python3 manage.py "$@" && chown -R 10001:10001 /var/lib/trailer'


class Standalone:
    """`manage.py standalone`, as its users start it."""

    name = "standalone"
    command = (sys.executable, "manage.py", "standalone")
    has_front_door = False

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def begin(self) -> None:
        """Before the first start: the tables, which take seconds to make."""
        copy_migrated_database(self.folder / "data")

    def settings(self) -> dict[str, str]:
        """What this way has to be told beside the settings of every one."""
        return {}

    def processes(self, pid: int) -> list[psutil.Process]:
        """Those of the server, without an agent's."""
        return [psutil.Process(pid)]

    def kill(self) -> None:
        """End what does not end with the process that was started."""

    def remove(self) -> None:
        """Remove what is not in the folder."""

    def manage(self, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
        """Run a management command to its good end; the server may run or not."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} failed:\n{done.stdout}{done.stderr}")


class Processes(Standalone):
    """The processes of a deployment; see production_set.py."""

    name = "production"
    command = (sys.executable, "-m", "tests.ground.production_set")
    has_front_door = True

    def begin(self) -> None:
        """`prepare` makes the tables."""

    def processes(self, pid: int) -> list[psutil.Process]:
        children = psutil.Process(pid).children(recursive=True)
        return [child for child in children if _serves(child)]

    def manage(self, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
        with self._database(environment) as url:
            super().manage({**environment, "DATABASE_URL": url}, words)

    @contextmanager
    def _database(self, environment: Mapping[str, str]) -> Iterator[str]:
        """That of the deployment, which is started for the command when all was killed."""
        url = environment.get("DATABASE_URL") or (self.folder / URL_FILE).read_text()
        if takes_connections(url):
            yield url
        else:
            postgres = PrivatePostgres(self.folder / "postgres").start()
            try:
                yield postgres.url
            finally:
                postgres.stop()


class Containers(Standalone):
    """deploy/compose.yaml in containers on a private engine; see compose_set.py."""

    name = "containers"
    command = (sys.executable, "-m", "tests.ground.compose_set")
    has_front_door = True

    def begin(self) -> None:
        """`prepare` makes the tables."""

    def settings(self) -> dict[str, str]:
        return {"TRAILER_TEST_MACHINE": str(server_machine().host.number)}

    def processes(self, pid: int) -> list[psutil.Process]:
        with self._client() as client:
            first = [
                psutil.Process(client.api.inspect_container(row["Id"])["State"]["Pid"])
                for row in self._containers(client)
                if row["Labels"]["com.docker.compose.service"] in _SERVING
            ]
        return [*first, *(child for each in first for child in each.children(recursive=True))]

    def kill(self) -> None:
        with self._client() as client:
            for row in self._containers(client):
                # One that ended by itself is no fault.
                with suppress(APIError):
                    client.api.kill(row["Id"])

    def remove(self) -> None:
        # Never started, or no longer: there is nothing then.
        with suppress(RuntimeError):
            self._project().run("down", "--volumes", "--timeout", "1")

    def manage(self, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
        """As docs/backup.md has it: in a container of its own, which finds the files it names."""
        folders = {str(Path(word).parent) for word in words if word.startswith("/")}
        binds = [part for folder in sorted(folders) for part in ("-v", f"{folder}:{folder}")]
        run = ("run", "--rm", "-T", "--user", "0", *binds, "worker", "sh", "-c", _MANAGE, "manage")
        self._project().run(*run, *words)

    def _project(self) -> ComposeProject:
        return ComposeProject(project_name(self.port), server_machine().url, self.folder)

    @contextmanager
    def _client(self) -> Iterator[docker.DockerClient]:
        with closing(server_machine().client()) as client:
            yield client

    def _containers(self, client: docker.DockerClient) -> list[Any]:
        """Those that run."""
        mark = f"com.docker.compose.project={project_name(self.port)}"
        found: list[Any] = client.api.containers(filters={"label": mark})
        return found


WAYS = {way.name: way for way in (Standalone, Processes, Containers)}


def chosen() -> type[Standalone]:
    """The way of this test run."""
    return WAYS[os.environ.get("TRAILER_TEST_SERVER", Standalone.name)]


def project_name(port: int) -> str:
    """Several deployments run on one machine."""
    return f"trailer{port}"


def _serves(process: psutil.Process) -> bool:
    """What came and went meanwhile does not count."""
    with suppress(psutil.Error):
        words = process.cmdline()
        return "agent" not in words and Path(words[0]).name.startswith(("python", "caddy"))
    return False
