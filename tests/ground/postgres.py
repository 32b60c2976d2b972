"""A real PostgreSQL server of the tests' own."""

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
import psycopg

from tests.ground import process
from tests.ground.wait import eventually

# Beside a data folder: where tests find the database that was started for a deployment.
URL_FILE = "database.url"


class PrivatePostgres:
    """A server with its own folder and port, fast rather than durable.

    A folder that is given may hold the data of an earlier one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        # The server refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="trailer-test-postgres-"))
        self.port = process.free_port()
        self.url = f"postgres://postgres@{process.LOOPBACK}:{self.port}/postgres"
        self._process: process.Child | None = None

    def start(self) -> Self:
        """Create the data folder, start the server and wait until it takes connections."""
        self.folder.mkdir(exist_ok=True)
        if (self.folder / "data" / "PG_VERSION").exists():
            self.run()
            return self
        if self.user:
            shutil.chown(self.folder, self.user, self.user)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data, log = self.folder / "data", self.folder / "log"
        initdb: list[str | Path]
        initdb = [programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
        creation = process.start(
            [*initdb, "-E", "UTF8", "--locale=C.UTF-8"], log, cwd=self.folder, user=self.user
        )
        if creation.wait(60) != 0:
            raise RuntimeError(f"initdb failed:\n{process.tail(log)}")
        self.run()
        return self

    def kill9(self) -> None:
        """Kill the server and its children outright, as a crash of the machine would."""
        if self._process is not None:
            children = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            self._process.wait()
            # They end by themselves when they see that; a new server waits for the last of them.
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=10)

    def processes(self) -> list[psutil.Process]:
        """The server and what it started for its clients; none while it is down."""
        if self._process is None or self._process.poll() is not None:
            return []
        server = psutil.Process(self._process.pid)
        return [server, *server.children(recursive=True)]

    def run(self) -> None:
        """Start the server on its data folder and wait until it takes connections."""
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data, log = self.folder / "data", self.folder / "log"
        settings = [f"listen_addresses={process.LOOPBACK}", "fsync=off", "full_page_writes=off"]
        server: list[str | Path]
        server = [programs / "postgres", "-D", data, "-p", str(self.port), "-k", self.folder]
        for setting in settings:
            server += ["-c", setting]
        self._forget_a_dead_one(data / "postmaster.pid")

        def serves() -> bool:
            # It refuses to start while children of a killed one still have the data open.
            if self._process is None or self._process.poll() is not None:
                self._process = process.start(server, log, cwd=self.folder, user=self.user)
            return takes_connections(self.url)

        self._process = None
        try:
            eventually(serves, 30, "PostgreSQL does not start")
        except AssertionError as late:
            raise AssertionError(f"{late}:\n{process.tail(log)}") from late

    def stop(self) -> None:
        """Stop the server; SIGINT: without waiting for its clients."""
        if self._process is not None:
            process.stop(self._process, signal.SIGINT)

    def destroy(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _forget_a_dead_one(self, pidfile: Path) -> None:
        """A killed server whose parent was killed too has a number until somebody reaps it, and
        a new one would take that for a sign of life."""
        with suppress(FileNotFoundError):
            number = int(pidfile.read_text().split()[0])
            with suppress(psutil.NoSuchProcess):
                if psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
                    return
            pidfile.unlink()


def takes_connections(url: str) -> bool:
    """Tell whether a PostgreSQL server answers there."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
