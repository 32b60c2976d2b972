"""Child processes of the tests: they log to a file, are waited for, and die with the test run."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

LOOPBACK = "127.0.0.1"
Child = subprocess.Popen[bytes]


class Part(Protocol):
    """What a process of the ground starts and has to stop."""

    def start(self) -> object: ...

    def stop(self) -> None: ...


def run_until_signalled(part: Part) -> None:
    """The life of a process that is nothing but this part; SIGINT and SIGTERM end it in order."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        part.start()
        ended.wait()
    finally:
        part.stop()


def run(*command: str | Path, check: bool = True) -> str:
    """Run a short command to its end and return what it printed, with its errors in a failure."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def start(
    command: Sequence[str | Path],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: str | None = None,
    own_group: bool = False,
) -> Child:
    """Start a process that appends all it prints to `log`.

    The kernel ends it should the test run be killed. That signal is tied to the starting thread,
    so it is left out where another than the main thread starts the process. With `own_group`
    the process leads a group, so that its children can be ended with it.
    """
    guard = ["setpriv", "--pdeathsig", "SIGKILL"]
    if threading.current_thread() is not threading.main_thread():
        guard = []
    with log.open("ab") as output:
        return subprocess.Popen(
            [*guard, *(str(part) for part in command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            start_new_session=own_group,
        )


def stop(process: Child, how: signal.Signals = signal.SIGTERM, timeout: float = 15.0) -> int:
    """End a process with the signal, and with SIGKILL when it does not obey in time."""
    if process.poll() is None:
        process.send_signal(how)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def free_port(low: int = 0, high: int = 0) -> int:
    """Return a TCP port that nobody listens on now: any, or the first free one of a range."""
    if not low:
        with closing(socket.socket()) as probe:
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
            return port
    span = high - low + 1
    offset = os.getpid() * 7 % span
    for step in range(span):
        port = low + (offset + step) % span
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {low} and {high}")


def accepts_connections(port: int, host: str = LOOPBACK) -> bool:
    """Tell whether somebody listens on the port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def tail(log: Path, lines: int = 25) -> str:
    """Return the end of a log file, for the message of a failure."""
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
