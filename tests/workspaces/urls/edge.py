"""The way of raw bytes from a visitor's connection to a program's, without any network.

The web server's own parser reads them, the relay says them again, and a parser like the program's
reads that: what the three understand can be compared.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import h11
from twisted.internet.testing import StringTransport

from trailer.streaming import StreamingFactory
from workspaces.urls.exchange import request_to_app
from workspaces.urls.relay import Visit

HOST = "box.localhost"


class Seen(NamedTuple):
    target: str
    body: bytes


class Edge:
    """Stands where Daphne's server stands, for one connection."""

    def __init__(self) -> None:
        self.application = SimpleNamespace(streams=lambda host: host.startswith("box."))
        self.server_name = ""
        self.proxy_forwarded_address_header = None
        self.visits: list[tuple[dict[str, Any], list[Any]]] = []
        self.switched: list[dict[str, Any]] = []
        self.wire: Any = StringTransport()  # type: ignore[no-untyped-call]

    # --- as the protocol calls it ---

    def protocol_connected(self, protocol: Any) -> None: ...

    def protocol_disconnected(self, protocol: Any) -> None: ...

    def log_action(self, *args: Any) -> None: ...

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        messages: list[Any] = []
        if scope["type"] == "upgrade":
            self.switched.append(scope)
        else:
            self.visits.append((scope, messages))
        return SimpleNamespace(put_nowait=lambda message: self._take(protocol, messages, message))

    def _take(self, protocol: Any, messages: list[Any], message: Any) -> None:
        messages.append(message)
        if message["type"] == "http.request" and not message["more_body"]:
            # The next request of a connection is read when this one has its answer.
            protocol.handle_reply({"type": "http.response.start", "status": 200, "headers": []})
            protocol.handle_reply({"type": "http.response.body", "body": b""})

    # --- what was understood ---

    def receive(self, raw: bytes) -> None:
        channel = StreamingFactory(self).buildProtocol(None)
        channel.makeConnection(self.wire)
        channel.dataReceived(raw)

    @property
    def is_refused(self) -> bool:
        return b" 400 " in self.wire.value().partition(b"\r\n")[0]

    def whole(self) -> list[tuple[dict[str, Any], bytes]]:
        """Requests that arrived to their end."""
        return [
            (scope, b"".join(m.get("body", b"") for m in messages if m["type"] == "http.request"))
            for scope, messages in self.visits
            if any(m["type"] == "http.request" and not m["more_body"] for m in messages)
        ]


def said_to_app(scope: dict[str, Any], body: bytes) -> bytes:
    """Raises Unsendable."""
    visit = Visit(scope)
    request, has_body = request_to_app(visit, SimpleNamespace(user=None))  # type: ignore[arg-type]
    wire = h11.Connection(h11.CLIENT)
    data = wire.send(request) or b""
    if has_body and body:
        data += wire.send(h11.Data(data=body)) or b""
    return data + (wire.send(h11.EndOfMessage()) or b"")


def understood_by_app(raw: bytes) -> list[Seen]:
    """Every request in it, as the program's side reads it."""
    wire = h11.Connection(h11.SERVER)
    found: list[Seen] = []
    wire.receive_data(raw)
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            return found
        assert isinstance(event, h11.Request)
        target, body = bytes(event.target).decode(), b""
        while isinstance(event := wire.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(event, h11.EndOfMessage)
        found.append(Seen(target, body))
        wire.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        wire.send(h11.EndOfMessage())
        wire.start_next_cycle()
