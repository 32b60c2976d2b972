"""The realtime socket: a nudge means "ask for your state now". Losing it costs speed only."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import connect

from agent.clock import Backoff
from agent.protocol import PROTOCOL_VERSION

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

log = logging.getLogger(__name__)
_RECEIVE_TIMEOUT = 1.0


def socket_url(server_url: str) -> str:
    parts = urlsplit(server_url.rstrip("/"))
    scheme = {"https": "wss", "http": "ws"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, f"{parts.path}/ws/agent/", "", ""))


class NudgeListener:
    """Runs until `stop` is set; calls `on_nudge` for each nudge and after each reconnect, because
    one may have been missed."""

    def __init__(
        self,
        server_url: str,
        *,
        token: str,
        epoch: Callable[[], int],
        on_nudge: Callable[[], None],
        stop: threading.Event,
    ) -> None:
        self._url = socket_url(server_url)
        self._token = token
        self._epoch = epoch
        self._on_nudge = on_nudge
        self._stop = stop

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
            self._stop.wait(backoff.next_delay())

    def _listen(self, epoch: int, backoff: Backoff) -> None:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Trailer-Epoch": str(epoch),
            "Trailer-Protocol": str(PROTOCOL_VERSION),
        }
        with connect(self._url, additional_headers=headers, proxy=None, close_timeout=1) as socket:
            backoff.reset()
            self._on_nudge()
            while not self._stop.is_set() and self._epoch() == epoch:
                try:
                    frame = socket.recv(timeout=_RECEIVE_TIMEOUT)
                except TimeoutError:
                    continue
                if is_nudge(frame):
                    self._on_nudge()


def is_nudge(frame: str | bytes) -> bool:
    """Frames this version does not know are ignored."""
    if not isinstance(frame, str):
        return False
    try:
        message = json.loads(frame)
    except ValueError:
        return False
    return isinstance(message, dict) and bool(message.get("nudge"))
