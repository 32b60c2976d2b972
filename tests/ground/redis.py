"""A real Redis server of the tests' own."""

import shutil
import tempfile
from pathlib import Path
from typing import Self

from tests.ground import process
from tests.ground.wait import eventually


class PrivateRedis:
    """A server with its own folder and port that writes nothing to disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="trailer-test-redis-"))
        self.port = process.free_port()
        self.url = f"redis://{process.LOOPBACK}:{self.port}/0"
        self._process: process.Child | None = None

    def start(self) -> Self:
        """Start the server and wait until it listens."""
        self.folder.mkdir(exist_ok=True)
        command = ["redis-server", "--port", str(self.port), "--bind", process.LOOPBACK]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        self._process = process.start(command, self.folder / "log")
        eventually(lambda: process.accepts_connections(self.port), 20, "Redis does not listen")
        return self

    def stop(self) -> None:
        """Stop the server; `start` brings it back on the same port, empty."""
        if self._process is not None:
            process.stop(self._process)

    def kill9(self) -> None:
        """Kill the server outright; `start` brings it back, empty."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def destroy(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
