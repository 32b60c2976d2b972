"""The Docker engine of `make run`: use the one that answers, else start one that outlives us."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from setup_report import SetupError, data_dir
from setup_system import (
    FOR_THE_ENGINE,
    apt_install,
    find_command,
    is_debian,
    is_root,
    missing_packages,
)

DEFAULT_HOST = "unix:///var/run/docker.sock"
START_TIMEOUT_S = 60.0


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket file in place of a host and port."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def start_engine_if_none_answers() -> None:
    """Make sure that an engine answers where the server will look for it, if it will."""
    if os.environ.get("TRAILER_EMBEDDED_AGENT") == "0":
        return
    host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    problem = _why_no_answer(host)
    if problem is None:
        return
    if host != DEFAULT_HOST:
        raise SetupError(
            f"no Docker engine answers at DOCKER_HOST={host} ({problem}); "
            "start that engine, or unset DOCKER_HOST to use this machine's own."
        )
    if isinstance(problem, PermissionError):
        raise SetupError(
            f"this user may not use the Docker engine at {host}; "
            "add it to the group that owns the socket (usually docker), or run as root."
        )
    if not is_root():
        raise SetupError(
            f"no Docker engine answers at {host} ({problem}); "
            "install and start Docker, or set DOCKER_HOST to an engine that runs."
        )
    _install_dockerd()
    if _why_no_answer(host) is not None:
        _start_dockerd(host)


def _why_no_answer(host: str) -> OSError | None:
    """Ask the engine for its version; return None if it answers, else what went wrong."""
    address = urlsplit(host)
    try:
        if address.scheme == "unix":
            connection: http.client.HTTPConnection = UnixConnection(address.path)
        elif address.scheme in ("tcp", "http", "https") and address.hostname:
            # A TLS port is only tried for a connection: the keys are the Docker client's affair.
            socket.create_connection((address.hostname, address.port or 2375), timeout=5).close()
            return None
        else:
            return None
        connection.request("GET", "/_ping")
        connection.getresponse().read()
        connection.close()
    except OSError as error:
        return error
    except http.client.HTTPException as error:
        return OSError(f"it answers, but not as a Docker engine does: {error!r}")
    return None


def _install_dockerd() -> None:
    missing = missing_packages(FOR_THE_ENGINE)
    if not missing:
        return
    if not is_debian():
        raise SetupError(f"Docker is not installed (missing: {' '.join(missing)}); install it.")
    apt_install(missing)
    # Where a service manager starts services on installation, give the engine a moment.
    deadline = time.monotonic() + 5
    while Path("/run/systemd/system").exists() and time.monotonic() < deadline:
        if _why_no_answer(DEFAULT_HOST) is None:
            return
        time.sleep(0.2)


def _start_dockerd(host: str) -> None:
    """Start dockerd in a session of its own: Ctrl-C of `make run` must not end workspaces."""
    command = find_command("dockerd")
    if command is None:
        raise SetupError("dockerd is not on this machine's path although Docker is installed.")
    for pidfile in ("/var/run/docker.pid", "/var/run/docker/containerd/containerd.pid"):
        _drop_stale_pidfile(Path(pidfile))
    log = data_dir() / "engine" / "dockerd.log"
    # The data folder holds keys: should this be the first to make it, it is for nobody else.
    data_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as output:
        engine = subprocess.Popen(
            [command, "-H", host],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if _why_no_answer(host) is None:
            return
        if engine.poll() is not None:
            break
        time.sleep(0.1)
    tail = "\n".join(f"    {line}" for line in log.read_text().splitlines()[-5:])
    raise SetupError(f"the Docker engine does not start; the end of {log}:\n{tail}")


def _drop_stale_pidfile(pidfile: Path) -> None:
    """Remove a pid file whose process is gone or is another program by now.

    After a crash or reboot the number may be taken, and the daemon would refuse to start.
    """
    try:
        pid = int(pidfile.read_text())
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        name = ""
    except ValueError:
        name = ""
    if name not in ("dockerd", "containerd"):
        pidfile.unlink(missing_ok=True)
