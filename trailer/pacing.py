"""Daphne with back-pressure on WebSockets: sending waits for a slow client.

Daphne itself buffers without end in both directions, so one browser that stopped reading a log, or
one that types faster than anybody reads, would grow the server.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from daphne.cli import CommandLineInterface
from daphne.server import Server
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

# Messages of one client that wait for the application before no more is read from its socket.
_MOST_WAITING: Final = 64
_LOOK_AGAIN: Final = 0.02


@implementer(IPushProducer)
class Pace:
    """Told by the transport when its buffer is full and when it has room again."""

    def __init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()

    def pauseProducing(self) -> None:  # noqa: N802  the interface's names
        self._room.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._room.set()

    def stopProducing(self) -> None:  # noqa: N802
        self._room.set()

    async def room(self) -> None:
        await self._room.wait()


class PacedServer(Server):  # type: ignore[misc]  # Daphne has no types
    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.close" and self._closes(protocol, message.get("code")):
            return
        await super().handle_reply(protocol, message)
        if message["type"] == "websocket.send" and protocol in self.connections:
            await self._pace(protocol).room()

    def _closes(self, protocol: Any, code: int | None) -> bool:
        """Autobahn lets applications close with 1000 or private codes only; 1013 says "busy"."""
        is_standard = code is not None and 1000 < code < 3000
        if not is_standard or protocol not in self.connections:
            return False
        if protocol.state == protocol.STATE_CONNECTING:
            return False
        # Ignored by a connection that is closing already.
        protocol.sendCloseFrame(code=code)
        return True

    def protocol_disconnected(self, protocol: Any) -> None:
        super().protocol_disconnected(protocol)
        pace = self.connections[protocol].get("pace")
        if pace is not None:
            # Nothing will ever be read again: whoever waits must go on to see that.
            pace.stopProducing()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        queue = super().create_application(protocol, scope)
        if scope["type"] != "websocket" or queue is None:
            return queue
        return _Intake(queue, protocol)

    def _pace(self, protocol: Any) -> Pace:
        details = self.connections[protocol]
        if "pace" not in details:
            details["pace"] = pace = Pace()
            if "disconnected" not in details:
                # The HTTP side registered itself and has nothing more to say on this connection.
                protocol.transport.unregisterProducer()
                protocol.transport.registerProducer(pace, True)
        found: Pace = details["pace"]
        return found


class _Intake:
    """The application's queue, as the protocol fills it."""

    def __init__(self, queue: asyncio.Queue[Any], protocol: Any) -> None:
        self._queue = queue
        self._protocol = protocol
        self._paused = False

    def put_nowait(self, message: dict[str, Any]) -> None:
        self._queue.put_nowait(message)
        if self._queue.qsize() > _MOST_WAITING and not self._paused:
            self._paused = True
            self._protocol.transport.pauseProducing()
            self._look_later()

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        if self._queue.qsize() > _MOST_WAITING // 2:
            self._look_later()
            return
        self._paused = False
        if self._protocol.transport is not None:
            self._protocol.transport.resumeProducing()


class PacedCommand(CommandLineInterface):  # type: ignore[misc]
    """`python -m trailer.pacing`, with Daphne's own options."""

    server_class = PacedServer


if __name__ == "__main__":
    PacedCommand.entrypoint()
