"""The guard of an agent that is a process in its engine's own network: set directly."""

from __future__ import annotations

import platform
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.errors import GuardError
from agent.guard import table

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOCKET: Final = "unix:///var/run/docker.sock"
_CREDENTIALS: Final = struct.Struct("3i")
_PATIENCE: Final = 2.0


class LocalGuard:
    def is_in_place(self) -> bool:
        return table.is_in_place()

    def put(self) -> None:
        table.put()

    def remove(self) -> None:
        table.remove()


def is_engine_here(environment: Mapping[str, str], engine_name: str) -> bool:
    """Whether the engine forwards its containers' packets in this process's own network.

    Not so for an engine on another machine, and for one without root, which has a network of its
    own. Whoever listens on the engine's socket shows where it is; a relay in between would show
    itself, so the engine's name for its machine must fit as well.
    """
    address = environment.get("DOCKER_HOST") or _SOCKET
    if not address.startswith("unix://") or engine_name != platform.node():
        return False
    try:
        listener = _listener(address.removeprefix("unix://"))
        return _network_of(str(listener)) == _network_of("self")
    except PermissionError as problem:
        raise GuardError(
            "The metadata addresses cannot be closed to containers: this agent is no container, "
            "and it does not run as root."
        ) from problem
    except OSError:
        return False


def _network_of(process: str) -> Path:
    return Path(f"/proc/{process}/ns/net").readlink()


def _listener(path: str) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(path)
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, _, _ = _CREDENTIALS.unpack(told)
    return int(process)
