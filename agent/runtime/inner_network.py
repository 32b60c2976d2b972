"""Connections to a program inside a container, made in the container's own network.

From there even a program that listens on the container's loopback alone is reached, whatever
networks the container has, and never another container that got its address meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.errors import EngineError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

_NETWORK: Final = 0x40000000
_PATIENCE: Final = 5.0
_LOOPBACK: Final = ("127.0.0.1", "::1")


class PortClosed(EngineError):
    """Nothing listens there."""


def connect_inside(
    container_id: str, pid: int, port: int, addresses: Sequence[str]
) -> socket.socket:
    """Blocks for some seconds at most. Without the host's process table only the container's
    addresses are left, which an agent in the host's network reaches."""
    try:
        inside = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _connect(port, addresses)
    try:
        if container_id not in Path(f"/proc/{pid}/cgroup").read_text(errors="replace"):
            # The number belongs to another process by now.
            raise NotFound("The container has just ended.")
        return _connect_from(inside, port, (*_LOOPBACK, *addresses))
    except PermissionError:
        return _connect(port, addresses)
    except FileNotFoundError:
        raise NotFound("The container has just ended.") from None
    finally:
        os.close(inside)


def _connect_from(inside: int, port: int, addresses: Sequence[str]) -> socket.socket:
    """The network of this thread changes for a moment; the socket stays where it was made."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(inside)
        try:
            return _connect(port, addresses)
        finally:
            _enter(own)
    finally:
        os.close(own)


def _enter(namespace: int) -> None:
    # os.setns came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NETWORK) != 0:
        number = ctypes.get_errno()
        raise PermissionError(number, os.strerror(number))


def _connect(port: int, addresses: Sequence[str]) -> socket.socket:
    for address in addresses:
        try:
            found = socket.create_connection((address, port), timeout=_PATIENCE)
        except OSError:
            continue
        found.settimeout(None)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    raise PortClosed(f"Nothing listens on port {port} of this workspace.")
