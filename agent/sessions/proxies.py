"""A proxy session: bytes to and from a port of a workspace's container, under credit.

The agent reads nothing into them; requests are taken apart on the server alone.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Final

from agent.errors import NotFound
from agent.protocol.sessions import (
    BUSY,
    REFUSED,
    UNSUPPORTED,
    WINDOW,
    SessionClose,
    SessionControl,
    agreed_window,
)
from agent.runtime.inner_network import PortClosed
from agent.sessions.containers import Refused

if TYPE_CHECKING:
    from agent.protocol.sessions import SessionOpen
    from agent.runtime.port import Runtime
    from agent.sessions.channel import Channel
    from agent.sessions.containers import Containers

_LAST_PORT: Final = 65535


class ProxySessions:
    def __init__(self, runtime: Runtime, containers: Containers) -> None:
        self._runtime = runtime
        self._containers = containers

    def serve(self, channel: Channel, request: SessionOpen) -> None:
        if not 0 < request.port <= _LAST_PORT:
            raise Refused("The agent cannot read this request.", UNSUPPORTED)
        run = self._containers.running(request.workspace_id)
        try:
            connection = self._runtime.connect_port(run, request.port)
        except PortClosed as problem:
            raise Refused(str(problem), REFUSED) from None
        except NotFound as problem:
            raise Refused(str(problem), BUSY) from None
        channel.on_end = lambda: _cut(connection)
        if channel.end is not None:
            connection.close()
            return
        window = agreed_window(request.window)
        channel.widen(window)
        told = window if window > WINDOW else 0
        channel.say(SessionControl(opened=True, container=run.id, window=told))
        reader = threading.Thread(
            target=_pump, args=(channel, connection), name=f"proxy-{channel.number}", daemon=True
        )
        reader.start()
        _take(channel, connection)
        _cut(connection)
        reader.join()
        connection.close()


def _pump(channel: Channel, connection: socket.socket) -> None:
    """What the program sends; its end is the session's."""
    try:
        while data := connection.recv(channel.payload_limit):
            if not channel.write(data):
                return
    except OSError:
        # Cut from either side.
        pass
    channel.close(SessionClose())


def _take(channel: Channel, connection: socket.socket) -> None:
    while (item := channel.read()) is not None:
        if isinstance(item, bytes):
            try:
                connection.sendall(item)
            except OSError:
                # The reading side sees the end and tells it, after what was still to be read.
                return _wait(channel)
            channel.used(item)
    return None


def _wait(channel: Channel) -> None:
    while (item := channel.read()) is not None:
        if isinstance(item, bytes):
            channel.used(item)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is cut already.
        return
