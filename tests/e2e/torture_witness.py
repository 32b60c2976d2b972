"""What the engine itself told: its events, over all its deaths."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

_PAUSE = 0.1
_KINDS = quote(json.dumps({"type": ["container", "volume"]}))


@dataclass(frozen=True)
class Told:
    """`at` is the engine's clock in seconds; `name` is the container's name after it."""

    at: float
    kind: str
    action: str
    id: str
    name: str
    attributes: dict[str, str]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine")
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Witness:
    """Subscribes again after each death. A killed engine's last events are lost, a frozen one's
    come when it goes on."""

    def __init__(self, engine_socket: Path) -> None:
        self._socket = engine_socket
        self._lock = threading.Lock()
        self._seen: set[tuple[Any, ...]] = set()
        self._told: list[Told] = []
        self._since = time.time() - 1
        self._stop = threading.Event()
        self._connection: _UnixConnection | None = None
        self.subscriptions = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Witness:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    @property
    def told(self) -> list[Told]:
        with self._lock:
            return sorted(self._told, key=lambda one: one.at)

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            try:
                self._listen()
            except (OSError, http.client.HTTPException, ValueError):
                continue

    def _listen(self) -> None:
        connection = self._connection = _UnixConnection(self._socket)
        connection.request("GET", f"/v1.41/events?since={self._since:.9f}&filters={_KINDS}")
        answer = connection.getresponse()
        self.subscriptions += 1
        while line := answer.readline():
            self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        actor = event["Actor"]
        key = (event["timeNano"], event["Type"], event["Action"], actor["ID"])
        at = event["timeNano"] / 1e9
        self._since = at
        if event["Action"].startswith("exec_") or key in self._seen:
            return
        attributes = actor["Attributes"]
        name = attributes.get("name", "")
        with self._lock:
            self._seen.add(key)
            self._told.append(
                Told(at, event["Type"], event["Action"], actor["ID"], name, attributes)
            )
