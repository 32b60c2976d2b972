"""A real PostgreSQL as a workspace with a writer, and an agent, an engine and containers that are
killed while it is replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from docker.errors import APIError, NotFound

from agent.protocol import naming
from agent.protocol.spec import HealthCheckSpec, MountSpec
from tests.engine.agent_forks import AgentForks
from tests.engine.desired_host import DesiredHost
from tests.ground.postgres_image import FOLDER, OVERLAPS, POSTGRES, ensure_postgres
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker

    from tests.engine.agent_forks import ForkedAgent
    from tests.ground.engine import PrivateEngine
    from tests.ground.faults import Call, Moment
    from tests.ground.proxy import DockerApiProxy

ROOT = Path(__file__).resolve().parents[2]
NAME = "trailer-db"
# A name of PostgreSQL's image that may come to mean another one.
FIRST = "trailer-test/postgres-first:1"
HEALTH = HealthCheckSpec(
    test=("CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"),
    interval=0.3,
    timeout=5.0,
    retries=20,
)
RECOVERED = "was not properly shut down"


class DatabaseScene:
    def __init__(
        self,
        engine: PrivateEngine,
        proxy: DockerApiProxy,
        client: docker.DockerClient,
        folder: Path,
    ) -> None:
        self.host = DesiredHost()
        self.engine = engine
        self.proxy = proxy
        self.client = client
        self._folder = folder
        self._notes = folder / "acknowledged"
        self._notes.touch()
        self._forks = AgentForks()
        self._writer: subprocess.Popen[bytes] | None = None

    def open(self, *, shared_volumes: bool = False) -> Self:
        """The database is up, the agent rests, and the writer writes."""
        ensure_postgres(self.client)
        self.name_image(POSTGRES, FIRST)
        data = MountSpec(target=FOLDER, source="trailer-data", volume_id="v-data")
        self.agent = self._start_agent()
        with self.host.one_edit():
            self.host.volume("data")
            self.host.image("pg", ref=FIRST)
            self.host.workspace(
                "db",
                image="pg",
                command=(),
                mounts=(data,),
                health_check=HEALTH,
                shared_volumes=shared_volumes,
                drain_timeout=20.0,
            )
        self._wait(self._is_up, 40, "the database does not come up")
        command = [sys.executable, "-m", "tests.engine.row_writer"]
        self._writer = subprocess.Popen(
            self.engine.on_host([*command, self.engine.url, "w-db", str(self._notes)]),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait_for_rows()
        return self

    def close(self) -> None:
        if self._writer is not None:
            self._writer.kill()
            self._writer.wait()
        self._forks.close()
        self.host.close()
        for container in self.client.containers.list(all=True):
            container.remove(force=True, v=True)
        for image in self.client.images.list("trailer-test/postgres-*"):
            self.client.images.remove(str(image.id), force=True)

    def name_image(self, image: str, name: str) -> str:
        """Give an image a name, which another one may have had; its id."""
        repository, _, tag = name.rpartition(":")
        assert self.client.images.get(image).tag(repository, tag)
        return str(self.client.images.get(image).id)

    # --- one replace -----------------------------------------------------------------------------

    def replace(
        self,
        edit: Callable[[], object],
        *,
        kill: Callable[[], object] | None = None,
        at: str = "",
        moment: Moment | None = None,
        cut: bool = True,
    ) -> str:
        """Until the new container is all there is; the call at which `kill` struck."""
        before, struck = self.container_id(), list[str]()
        if kill is not None and moment is not None:

            def strike(call: Call) -> None:
                kill()
                struck.append(str(call))

            self.proxy.kill_point(1, moment, strike, cut=cut, only=at)
        edit()
        self.agent.look_again()
        if kill is not None:
            self._wait(lambda: struck, 30, f"never at {at}")
        self.proxy.reset()
        if not self.engine.answers():
            self.engine.start()
        if self.agent.is_gone():
            self.agent = self._start_agent()
        self._wait(lambda: self._is_up(instead_of=before), 60, "not replaced")
        self.wait_for_rows()
        return struck[0] if struck else ""

    def kill_agent(self) -> None:
        self.agent.kill()

    def kill_engine(self) -> None:
        self.engine.kill9()

    def crash(self, name: str) -> None:
        """As if the program in it had died: the engine starts it again."""
        with suppress(NotFound, ProcessLookupError):
            pid = int(self.client.api.inspect_container(name)["State"]["Pid"])
            if pid:
                os.kill(pid, signal.SIGKILL)

    # --- what there is ---------------------------------------------------------------------------

    def container_id(self) -> str:
        return str(self.client.api.inspect_container(NAME)["Id"])

    def acknowledged(self) -> set[int]:
        return {int(line) for line in self._notes.read_text().split()}

    def stored(self) -> set[int]:
        """What is in the table, asked once the server takes questions."""

        def asked() -> set[int]:
            query = ["psql", "-h", "127.0.0.1", "-U", "postgres", "-Atc", "SELECT n FROM noted"]
            code, output = self._ask(*query)
            assert code == 0, output
            return {int(line) for line in output.split()}

        return eventually(asked, 20, "the database does not answer")

    def overlaps(self) -> str:
        """Containers that began while another one still ran on the same folder."""
        code, output = self._ask("cat", OVERLAPS)
        return "" if code else output

    def _ask(self, *command: str) -> tuple[int | None, str]:
        done = self.client.containers.get(NAME).exec_run(list(command))
        assert isinstance(done.output, bytes)
        return done.exit_code, done.output.decode()

    def log(self) -> str:
        return str(self.client.containers.get(NAME).logs().decode(errors="replace"))

    def wait_for_rows(self) -> None:
        before = len(self.acknowledged())
        self._wait(lambda: len(self.acknowledged()) > before + 5, 30, "nothing is written")

    def _is_up(self, *, instead_of: str = "") -> bool:
        try:
            found = self.client.api.containers(
                all=True, filters={"label": f"{naming.LABEL_WORKSPACE}=w-db"}
            )
            assert [row["Names"][0] for row in found] == [f"/{NAME}"], found
            seen = self.client.api.inspect_container(NAME)
        except APIError as problem:
            raise AssertionError(str(problem)) from problem
        assert seen["Id"] != instead_of, "still the old one"
        # Not there before its first start.
        health = seen["State"].get("Health") or {}
        assert health.get("Status") == "healthy", health
        return True

    # --- helpers ---------------------------------------------------------------------------------

    def _start_agent(self) -> ForkedAgent:
        return self._forks.start(self.host, self.proxy.url, self._folder)

    def _wait(self, predicate: Callable[[], object], timeout: float, message: str) -> None:
        try:
            eventually(predicate, timeout, message)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.agent.log[-4000:]}") from problem
