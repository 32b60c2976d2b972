"""Agents as processes that start in a moment and can be killed: forked from one that has already
imported everything. `python -m tests.engine.agent_forks` is that one; tests use `AgentForks`."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agent.config import Config
from agent.diff import replaces
from agent.runtime.docker import DockerRuntime
from agent.server.http import HttpServer
from agent.signals import on_signals
from agent.store.identity import Identity
from agent.supervisor import Supervisor
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from tests.engine.desired_host import DesiredHost

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1


class AgentForks:
    """The mother process. `start` gives a running agent; all of them end with `close`."""

    def __init__(self) -> None:
        self._mother = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.agent_forks"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, host: DesiredHost, docker_host: str, state_dir: Path) -> ForkedAgent:
        order = {
            "server_url": host.server.url,
            "docker_host": docker_host,
            "state_dir": str(state_dir),
        }
        assert self._mother.stdin is not None
        assert self._mother.stdout is not None
        self._mother.stdin.write(json.dumps(order) + "\n")
        self._mother.stdin.flush()
        return ForkedAgent(int(self._mother.stdout.readline()), state_dir)

    def close(self) -> None:
        self._mother.kill()
        self._mother.wait()


class ForkedAgent:
    def __init__(self, pid: int, state_dir: Path) -> None:
        self.pid = pid
        self._state_dir = state_dir

    def look_again(self) -> None:
        """Ask for the newest document and for one full observation."""
        os.kill(self.pid, signal.SIGUSR1)

    def kill(self) -> Self:
        """SIGKILL; returns when the process is gone."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return self
        eventually(self.is_gone, 10, "a killed agent is still there", interval=0.002)
        return self

    def is_gone(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    @property
    def log(self) -> str:
        path = self._state_dir / "log"
        return path.read_text(errors="replace") if path.exists() else "(no log)"


def _be_an_agent(order: dict[str, str]) -> None:
    config = Config(
        server_url=order["server_url"],
        state_dir=Path(order["state_dir"]),
        engine_environment={"DOCKER_HOST": order["docker_host"]},
    )
    # Hundreds of replaces: what is looked at is their order, not how long the old one is kept.
    replaces.STEADY_SECONDS = 0.5
    supervisor = Supervisor(
        config,
        Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY),
        runtime=DockerRuntime(config.engine_environment),
        server=HttpServer(config.server_url, token=TOKEN),
    )

    def look() -> None:
        supervisor.poll.nudge()
        supervisor.parts.wake.request("test", full=True)

    on_signals({signal.SIGUSR1: look, signal.SIGTERM: supervisor.stop})
    supervisor.run()


def _child(order: dict[str, str]) -> None:
    """In the new process: cut off from the mother's pipes, and gone when she is."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(Path(order["state_dir"]) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        _be_an_agent(order)
    finally:
        # Not further: the rest of this process is the mother's.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(0)


def main() -> None:
    # Nobody waits for the dead: the kernel clears them away at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # A new agent looks at everything anyway: a wish that comes before it can listen is granted.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _child(json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
