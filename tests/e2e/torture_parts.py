"""The four parts of a running Trailer that a storm kills and freezes, each brought back as whoever
runs it would: at once, and again should it end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from tests.ground import process
from tests.ground.server import ROOT, RunningTrailer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.ground.engine import PrivateEngine
    from tests.ground.postgres import PrivatePostgres


class Part(ABC):
    """`down_since` and `up_since` are times of `time.monotonic`; one of them is None."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.up_since: float | None = time.monotonic()
        self.down_since: float | None = None
        self.kills = self.freezes = 0
        self._frozen = False

    def kill(self) -> None:
        self._goes_down()
        self.kills += 1
        self._kill()

    def freeze(self) -> None:
        self._goes_down()
        self.freezes += 1
        self._frozen = True
        self._freeze()

    def revive(self) -> None:
        if self._frozen:
            self._thaw()
        else:
            self._start()
        self._frozen = False
        self.down_since, self.up_since = None, time.monotonic()

    def tend(self) -> None:
        """Start it again if it should be up and ended, as a restart policy does."""
        if self.down_since is None and not self._is_running():
            self._start()
            self.up_since = time.monotonic()

    def _goes_down(self) -> None:
        self.down_since, self.up_since = time.monotonic(), None

    @abstractmethod
    def _kill(self) -> None: ...

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _freeze(self) -> None: ...

    @abstractmethod
    def _thaw(self) -> None: ...

    @abstractmethod
    def _is_running(self) -> bool: ...


class EnginePart(Part):
    def __init__(self, engine: PrivateEngine) -> None:
        super().__init__("engine")
        self._engine = engine
        # Times of `time.time`: a new engine first stops what outlived a killed one.
        self.starts: list[tuple[float, float]] = []

    def _kill(self) -> None:
        self._engine.kill9()

    def _start(self) -> None:
        begun = time.time()
        self._engine.start()
        self.starts.append((begun, time.time()))

    def _freeze(self) -> None:
        self._engine.freeze()

    def _thaw(self) -> None:
        self._engine.thaw()

    def _is_running(self) -> bool:
        # Its start waits until it answers.
        return True


class DatabasePart(Part):
    def __init__(self, postgres: PrivatePostgres) -> None:
        super().__init__("database")
        self._postgres = postgres
        self._stopped: list[psutil.Process] = []

    def _kill(self) -> None:
        self._postgres.kill9()

    def _start(self) -> None:
        self._postgres.run()

    def _freeze(self) -> None:
        self._stopped = self._postgres.processes()
        for one in self._stopped:
            with suppress(psutil.NoSuchProcess):
                one.suspend()

    def _thaw(self) -> None:
        for one in self._stopped:
            with suppress(psutil.NoSuchProcess):
                one.resume()

    def _is_running(self) -> bool:
        return True


class ChildPart(Part):
    """A process that ends when it cannot begin."""

    def __init__(self, name: str, log: Path) -> None:
        super().__init__(name)
        self.log = log
        self._child: process.Child | None = None
        self._again_at = 0.0

    @abstractmethod
    def _command(self) -> list[str | Path]: ...

    @abstractmethod
    def _environment(self) -> Mapping[str, str]: ...

    def _start(self) -> None:
        self._again_at = time.monotonic() + 1
        self._child = process.start(self._command(), self.log, env=self._environment(), cwd=ROOT)

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def _thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            os.kill(self._child.pid, number)

    def _is_running(self) -> bool:
        ended = self._child is None or self._child.poll() is not None
        return not ended or time.monotonic() < self._again_at

    def stop(self) -> None:
        """Whatever state it is in."""
        self._thaw()
        if self._child is not None:
            process.stop(self._child, signal.SIGINT)


class AgentPart(ChildPart):
    def __init__(self, folder: Path, server_url: str, engine: PrivateEngine, token: str) -> None:
        super().__init__("agent", folder / "agent.log")
        self.state_dir = folder / "agent"
        self.state_dir.mkdir()
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("DOCKER_", "TRAILER_"))}
        self._env = {
            **outer,
            "TRAILER_SERVER_URL": server_url,
            "TRAILER_AGENT_STATE_DIR": str(self.state_dir),
            "TRAILER_ENROLMENT_TOKEN": token,
            "TRAILER_AGENT_SELF_UPDATE": "0",
            "DOCKER_HOST": engine.url,
        }

    def _command(self) -> list[str | Path]:
        return [sys.executable, "-m", "agent", "run"]

    def _environment(self) -> Mapping[str, str]:
        return self._env


class ServerPart(ChildPart):
    """`trailer` is only asked how to start it: it is restarted here without waiting."""

    def __init__(self, trailer: RunningTrailer) -> None:
        super().__init__("server", trailer.folder / "log")
        self._trailer = trailer

    def _command(self) -> list[str | Path]:
        return [*self._trailer.way.command]

    def _environment(self) -> Mapping[str, str]:
        return self._trailer.environment()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._trailer.folder, ignore_errors=True)
