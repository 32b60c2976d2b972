"""Requests that an application gets while they still arrive, and connections handed over whole.

Daphne reads a request to its end before anybody hears of it, and then keeps it in memory. For host
names that the application streams, it begins with the head; and one that asks for another protocol
becomes bytes in both directions, as the scope `upgrade`.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.utils import HEADER_NAME_RE, INVALID_HEADER_VALUE_BYTES
from twisted.internet.protocol import Protocol

logger = logging.getLogger(__name__)

_SWITCHED: Final = b"websocket"


class StreamingFactory(HTTPFactory):  # type: ignore[misc]  # Daphne has no types
    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  the interface's name
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = StreamedRequest
        return protocol


class StreamedRequest(WebRequest):  # type: ignore[misc]
    """As Daphne's own for the server's names."""

    _streams = False
    _arrives = False

    # --- as it arrives ---

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """All header fields are there; the body is not."""
        super().gotLength(length)
        channel = self.channel
        asked = (self.requestHeaders.getRawHeaders(b"host") or [b""])[0].decode("latin-1")
        if not self.server.application.streams(asked):
            return
        self._streams = True
        self.method, self.uri = channel._command, channel._path
        self.clientproto = channel._version
        self.client, self.host = channel.getPeer(), channel.getHost()
        self.path, _, self.query_string = self.uri.partition(b"?")
        if not self._upgrade():
            self._arrives = True
            self._begin()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if not self._streams:
            super().handleContentChunk(data)
        elif self.application_queue is not None:
            self.application_queue.put_nowait(
                {"type": "http.request", "body": data, "more_body": True}
            )

    def process(self) -> Any:
        """The whole request has arrived."""
        if not self._streams:
            return super().process()
        self._arrives = False
        if self.application_queue is not None:
            self.application_queue.put_nowait(
                {"type": "http.request", "body": b"", "more_body": False}
            )
        elif self._upgrade() and not self._is_bad():
            self._hand_over()
        elif not self.finished:
            self.basic_error(400, b"Bad Request", "The request is not valid")
        return None

    def finish(self) -> None:
        if self._arrives:
            # An answer before the end of its request: the rest of it has no reader.
            self.channel.persistent = False
        super().finish()

    def pause(self) -> None:
        if self._arrives and self.channel is not None:
            self.channel.setTimeout(None)
            self.channel._networkProducer.pauseProducing()

    def resume(self) -> None:
        if self._arrives and self.channel is not None:
            self.channel.setTimeout(self.channel.timeOut)
            self.channel._networkProducer.resumeProducing()

    def cut(self) -> None:
        """An end in the middle, which the other side can tell from a proper one."""
        if self.channel is not None:
            self.channel._networkProducer.abortConnection()

    # --- the scope ---

    def _begin(self) -> None:
        self.request_start = time.time()
        if self._is_bad():
            # Answered once the request is over.
            return
        scope = self._scope("http")
        self.application_queue = self.server.create_application(self, scope)

    def _upgrade(self) -> bool:
        wanted = self.requestHeaders.getRawHeaders(b"upgrade") or [b""]
        return bool(wanted[0].lower() == _SWITCHED and self.method == b"GET")

    def _is_bad(self) -> bool:
        hosts = self.requestHeaders.getRawHeaders(b"host") or ()
        if len(hosts) != 1 or not (self.path + self.query_string).isascii():
            return True
        return any(
            not HEADER_NAME_RE.fullmatch(name)
            or any(INVALID_HEADER_VALUE_BYTES.intersection(value) for value in values)
            for name, values in self.requestHeaders.getAllRawHeaders()
        )

    def _scope(self, kind: str) -> dict[str, Any]:
        if hasattr(self.client, "host"):
            self.client_addr = [str(self.client.host), self.client.port]
            self.server_addr = [str(self.host.host), self.host.port]
        return {
            "type": kind,
            "http_version": self.clientproto.split(b"/")[-1].decode("ascii"),
            "method": self.method.decode("ascii"),
            "path": unquote(self.path.decode("ascii")),
            "raw_path": self.path,
            "root_path": "",
            "scheme": "https" if self.isSecure() else "http",
            "query_string": self.query_string,
            "headers": [
                (name.lower(), value)
                for name, values in self.requestHeaders.getAllRawHeaders()
                for value in values
                if b"_" not in name
            ],
            "client": self.client_addr,
            "server": self.server_addr,
        }

    def _hand_over(self) -> None:
        scope = self._scope("upgrade")
        connection = SwitchedConnection(self.server)
        transport = self.channel.transport
        transport.protocol = connection
        connection.makeConnection(transport)  # type: ignore[no-untyped-call]
        self.server.protocol_disconnected(self)
        connection.begin(scope)
        self.channel._networkProducer.resumeProducing()


class SwitchedConnection(Protocol):
    """Bytes between a client and the application."""

    transport: Any

    def __init__(self, server: Any) -> None:
        self.server = server
        self.queue: Any = None
        self.is_over = False

    def begin(self, scope: dict[str, Any]) -> None:
        self.server.protocol_connected(self)
        self.queue = self.server.create_application(self, scope)

    # --- from the client ---

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.queue is not None:
            self.queue.put_nowait({"type": "upgrade.receive", "bytes": data})

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802
        self.is_over = True
        self.server.protocol_disconnected(self)
        if self.queue is not None:
            self.queue.put_nowait({"type": "upgrade.disconnect"})

    def pause(self) -> None:
        self.transport.pauseProducing()

    def resume(self) -> None:
        if not self.is_over:
            self.transport.resumeProducing()

    # --- from the application ---

    def handle_reply(self, message: dict[str, Any]) -> None:
        if self.is_over:
            return
        if message["type"] == "upgrade.send":
            self.transport.write(message["bytes"])
        elif message["type"] == "upgrade.refuse":
            self._refuse(message["status"], message["body"])
        elif message["type"] == "upgrade.close":
            self.transport.loseConnection()

    def handle_exception(self, exception: Exception) -> None:
        self.transport.loseConnection()

    def check_timeouts(self) -> None:
        """How long it stays open is for its two ends to say."""

    def _refuse(self, status: int, body: bytes) -> None:
        head = (
            f"HTTP/1.1 {status} Refused\r\nConnection: close\r\nCache-Control: no-store\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.loseConnection()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other
