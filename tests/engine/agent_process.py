"""The real agent as a process of its own, against the fake server, for tests on a real engine."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from agent.store.identity import Identity, identity_path, save_identity
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN, FakeServer

ROOT = Path(__file__).resolve().parents[2]


class AgentProcess:
    """Started and killed at will; its log is shown when an assertion needs it. `through` is a
    command that starts it elsewhere than in the network of the tests."""

    def __init__(
        self,
        server: FakeServer,
        docker_host: str,
        state_dir: Path,
        *,
        through: Sequence[str] = (),
        **environment: str,
    ) -> None:
        self.state_dir = state_dir
        self._through = through
        self.lines: list[str] = []
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("DOCKER_", "TRAILER_"))},
            "TRAILER_SERVER_URL": server.url,
            "TRAILER_AGENT_STATE_DIR": str(state_dir),
            "DOCKER_HOST": docker_host,
            **environment,
        }
        self._process: subprocess.Popen[str] | None = None
        if not identity_path(state_dir).exists():
            save_identity(state_dir, Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY))

    def start(self) -> Self:
        self._process = subprocess.Popen(
            [*self._through, sys.executable, "-m", "agent", "run"],
            cwd=ROOT,
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        return self

    def command(self, name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent", name],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(20)

    def wait(self, timeout: float = 20) -> int:
        assert self._process is not None
        return self._process.wait(timeout)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.lines.append(line.rstrip())
