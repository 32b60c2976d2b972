"""A real PostgreSQL server of the tests' own."""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Self

import psycopg

from tests.ground import process
from tests.ground.wait import eventually


class PrivatePostgres:
    """A server with its own folder and port, fast rather than durable."""

    def __init__(self) -> None:
        # The server refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="trailer-test-postgres-"))
        self.port = process.free_port()
        self.url = f"postgres://postgres@{process.LOOPBACK}:{self.port}/postgres"
        self._process: process.Child | None = None

    def start(self) -> Self:
        """Create the data folder, start the server and wait until it takes connections."""
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
        settings = [f"listen_addresses={process.LOOPBACK}", "fsync=off", "full_page_writes=off"]
        server: list[str | Path]
        server = [programs / "postgres", "-D", data, "-p", str(self.port), "-k", self.folder]
        for setting in settings:
            server += ["-c", setting]
        self._process = process.start(server, log, cwd=self.folder, user=self.user)
        eventually(self._takes_connections, 30, f"PostgreSQL: {process.tail(log)}")
        return self

    def destroy(self) -> None:
        """Stop the server (SIGINT: without waiting for its clients) and remove its folder."""
        if self._process is not None:
            process.stop(self._process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _takes_connections(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
