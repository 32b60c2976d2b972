"""The live socket of pages: the frames of the resources it subscribed to."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from tests.ground.server import RunningTrailer


class LiveSocket:
    """The latest frame of each resource, as an open page has it."""

    def __init__(self, trailer: RunningTrailer, *resources: str) -> None:
        self.frames: dict[str, list[dict[str, Any]]] = {}
        self._socket = connect(
            trailer.url.replace("http", "ws", 1) + "/ws/live/",
            additional_headers={"Authorization": f"Token {trailer.token()}"},
            proxy=None,
        )
        self._socket.send(json.dumps({"subscribe": list(resources)}))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for text in self._socket:
                frame = json.loads(text)
                self.frames.setdefault(frame.get("resource", ""), []).append(frame)
        except ConnectionClosed:
            return

    def latest(self, resource: str) -> dict[str, Any]:
        return self.frames.get(resource, [{}])[-1]

    def close(self) -> None:
        self._socket.close()
        self._reader.join(5)
