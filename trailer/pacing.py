"""Daphne with back-pressure: sending waits for a slow client, on WebSockets as in answers.

Daphne itself buffers without end in both directions, so one browser that stopped reading a log, or
one that types faster than anybody reads, would grow the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from daphne.cli import CommandLineInterface
from daphne.server import Server
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from trailer.streaming import StreamingFactory

if TYPE_CHECKING:
    from collections.abc import Callable

    from daphne.http_protocol import HTTPFactory

# Messages of one client that wait for the application before no more is read from its socket.
_MOST_WAITING: Final = 64
# Of a request's body, which comes in pieces of up to 64 KiB.
_MOST_CHUNKS: Final = 8
_LOOK_AGAIN: Final = 0.005
# Who opens a socket is looked up in the database first. Daphne's own 5 s pass on a busy machine,
# and whoever came then was refused without a word.
HANDSHAKE_SECONDS: Final = 20
FOR_EVER: Final = -1


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
    @property
    def http_factory(self) -> StreamingFactory:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, plain: HTTPFactory) -> None:
        """Set by Daphne when it starts; ours makes requests that can stream."""
        self._http_factory = StreamingFactory(self)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "websocket.close" and self._closes(protocol, message.get("code")):
            return
        if kind == "http.response.cut":
            protocol.cut()
            return
        if kind == "http.response.body" and not message.get("more_body"):
            self._last_body(protocol)
        await super().handle_reply(protocol, message)
        if protocol not in self.connections:
            return
        if kind in {"websocket.send", "upgrade.send"}:
            await self._pace(protocol).room()
        elif kind == "http.response.body" and message.get("more_body"):
            await self._http_pace(protocol).room()

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
        if queue is None:
            return queue
        has_ended = self.connections[protocol]["application_instance"].done
        if scope["type"] == "websocket":
            transport = protocol.transport
            return Intake(
                queue,
                has_ended=has_ended,
                pause=transport.pauseProducing,
                resume=lambda: protocol.transport and protocol.transport.resumeProducing(),
            )
        if hasattr(protocol, "pause"):
            return Intake(
                queue,
                has_ended=has_ended,
                pause=protocol.pause,
                resume=protocol.resume,
                most=_MOST_CHUNKS,
            )
        return queue

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

    def _http_pace(self, protocol: Any) -> Pace:
        """The connection belongs to its HTTP side, which passes on what the transport says."""
        details = self.connections[protocol]
        if "pace" not in details:
            details["pace"] = pace = Pace()
            if "disconnected" not in details and not protocol.finished:
                protocol.registerProducer(pace, True)
        found: Pace = details["pace"]
        return found

    def _last_body(self, protocol: Any) -> None:
        if "pace" in self.connections.get(protocol, {}) and not protocol.finished:
            protocol.unregisterProducer()


class Intake:
    """The application's queue, as the protocol fills it. One that has ended reads no more:
    it is not waited for, and nothing is kept for it."""

    def __init__(
        self,
        queue: asyncio.Queue[Any],
        *,
        has_ended: Callable[[], bool],
        pause: Callable[[], object],
        resume: Callable[[], object],
        most: int = _MOST_WAITING,
    ) -> None:
        self._queue = queue
        self._has_ended = has_ended
        self._pause = pause
        self._resume = resume
        self._most = most
        self._paused = False

    def put_nowait(self, message: dict[str, Any]) -> None:
        if self._has_ended():
            return
        self._queue.put_nowait(message)
        if self._queue.qsize() > self._most and not self._paused:
            self._paused = True
            self._pause()
            self._look_later()

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        if self._queue.qsize() > self._most // 2 and not self._has_ended():
            self._look_later()
            return
        self._paused = False
        self._resume()


class PacedCommand(CommandLineInterface):  # type: ignore[misc]
    """`python -m trailer.pacing`, with Daphne's own options."""

    server_class = PacedServer

    def __init__(self) -> None:
        super().__init__()
        # Sessions have an end of their own; a day is none for a log that is followed.
        self.parser.set_defaults(
            websocket_connect_timeout=HANDSHAKE_SECONDS, websocket_timeout=FOR_EVER
        )


if __name__ == "__main__":
    PacedCommand.entrypoint()
