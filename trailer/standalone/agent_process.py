"""The embedded agent: a child process, started again when it dies, ended with the server."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

_STOP_SECONDS = 15
_RESTART_SECONDS = (1, 2, 5, 10)
_STEADY_SECONDS = 10.0


def failures_in_a_row(failures: int, *, lived: float) -> int:
    """Counted anew after a life that was no false start: it did not fail for the same reason."""
    return 1 if lived >= _STEADY_SECONDS else failures + 1


def restart_delay(failures: int) -> int:
    return _RESTART_SECONDS[min(failures, len(_RESTART_SECONDS)) - 1]


class AgentProcess:
    """Supervises `python -m agent run`. It never stops workspaces, and neither does its end."""

    def __init__(self, *, server_url: str, state_dir: Path, base_dir: Path) -> None:
        self._environment = {
            **os.environ,
            "TRAILER_SERVER_URL": server_url,
            # Whatever the server is bound to is an address of this very machine.
            "TRAILER_AGENT_PLAIN_HTTP": "1",
            "TRAILER_AGENT_STATE_DIR": str(state_dir),
        }
        self._base_dir = base_dir
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="agent-process", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                logger.warning("agent did not end in time, killed", extra={"pid": process.pid})
                process.kill()
                process.wait()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _supervise(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            begun = time.monotonic()
            self._process = self._spawn()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            failures = failures_in_a_row(failures, lived=time.monotonic() - begun)
            delay = restart_delay(failures)
            logger.warning("agent ended, starting again", extra={"code": code, "delay": delay})
            self._stopping.wait(delay)

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Own session: a Ctrl-C at the terminal reaches the server, which then ends the agent.

        Its standard input is a pipe that we never write to: when this process dies without a
        word, the pipe closes and the agent ends as well.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "agent", "run", "--lifeline"],
            cwd=self._base_dir,
            env=self._environment,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
