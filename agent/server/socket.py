"""The realtime socket: nudges ("ask for your state now") and sessions. Losing it costs speed only.

Text frames are nudges, binary ones belong to sessions. The agent itself sends one text frame when
its token is replaced: the new one.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import ClientConnection, connect

from agent.clock import Backoff
from agent.errors import ServerUnavailable
from agent.protocol import PROTOCOL_VERSION
from agent.server.plain_http import check_peer

if TYPE_CHECKING:
    import socket as sockets
    import threading
    from collections.abc import Callable

    from websockets.client import ClientProtocol

log = logging.getLogger(__name__)
_RECEIVE_TIMEOUT = 1.0
_LARGEST_FRAME = 256 * 1024


class SessionWire(Protocol):
    """The sessions of one connection."""

    def frame(self, data: bytes) -> None: ...

    def lost(self) -> None: ...


class _NoSessions:
    def frame(self, data: bytes) -> None:
        """Nobody asked for any."""

    def lost(self) -> None:
        """There was nothing."""


class _PrivateConnection(ClientConnection):
    """Made before anything is sent, also after a redirect."""

    def __init__(self, socket: sockets.socket, protocol: ClientProtocol, **options: Any) -> None:
        if not protocol.uri.secure:
            check_peer(socket)
        super().__init__(socket, protocol, **options)


def socket_url(server_url: str) -> str:
    parts = urlsplit(server_url.rstrip("/"))
    scheme = {"https": "wss", "http": "ws"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, f"{parts.path}/ws/agent/", "", ""))


class ServerSocket:
    """Runs until `stop` is set; calls `on_nudge` for each nudge and after each reconnect, because
    one may have been missed. `sessions` gets a way to send, and makes the wire of a connection."""

    def __init__(
        self,
        server_url: str,
        *,
        token: Callable[[], str],
        epoch: Callable[[], int],
        on_nudge: Callable[[], None],
        stop: threading.Event,
        plain_http: bool = False,
        sessions: Callable[[Callable[[bytes], None]], SessionWire] = lambda send: _NoSessions(),
    ) -> None:
        self._url = socket_url(server_url)
        self._plain_http = plain_http
        self._token = token
        self._epoch = epoch
        self._on_nudge = on_nudge
        self._stop = stop
        self._sessions = sessions

    def run(self) -> None:
        backoff = Backoff(first=1.0, limit=30.0)
        while not self._stop.is_set():
            epoch = self._epoch()
            if not epoch:
                self._stop.wait(0.2)
                continue
            try:
                self._listen(epoch, backoff)
            except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, InvalidURI) as why:
                log.debug("socket lost: %s", why)
            except ServerUnavailable as why:
                log.warning("no socket: %s", why)
            self._stop.wait(backoff.next_delay())

    def _listen(self, epoch: int, backoff: Backoff) -> None:
        token = self._token()
        headers = {
            "Authorization": f"Bearer {token}",
            "Trailer-Epoch": str(epoch),
            "Trailer-Protocol": str(PROTOCOL_VERSION),
        }
        with connect(
            self._url,
            create_connection=None if self._plain_http else _PrivateConnection,
            additional_headers=headers,
            proxy=None,
            close_timeout=1,
            # Terminal bytes and keystrokes: compressing them costs more than it saves.
            compression=None,
            max_size=_LARGEST_FRAME,
        ) as socket:
            backoff.reset()
            wire = self._sessions(_sender_of(socket))
            try:
                self._on_nudge()
                self._receive(socket, wire, epoch, token)
            finally:
                wire.lost()

    def _receive(
        self, socket: ClientConnection, wire: SessionWire, epoch: int, shown: str
    ) -> None:
        while not self._stop.is_set() and self._epoch() == epoch:
            if (token := self._token()) != shown:
                # So that no session ends because the token that opened the socket did.
                socket.send(json.dumps({"token": token}))
                shown = token
            try:
                frame = socket.recv(timeout=_RECEIVE_TIMEOUT)
            except TimeoutError:
                continue
            if isinstance(frame, bytes):
                wire.frame(frame)
            elif is_nudge(frame):
                self._on_nudge()


def _sender_of(socket: ClientConnection) -> Callable[[bytes], None]:
    def send(data: bytes) -> None:
        try:
            socket.send(data)
        except ConnectionClosed as why:
            raise ConnectionError(str(why)) from why

    return send


def is_nudge(frame: str | bytes) -> bool:
    """Frames this version does not know are ignored."""
    if not isinstance(frame, str):
        return False
    try:
        message = json.loads(frame)
    except ValueError:
        return False
    return isinstance(message, dict) and bool(message.get("nudge"))
