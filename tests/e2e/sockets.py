"""A client of the session sockets, as a page or a script would be one."""

from __future__ import annotations

import json
import socket as sockets
import threading
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.ground.wait import eventually

if TYPE_CHECKING:
    from tests.ground.server import RunningTrailer


class SessionSocket:
    """Collects everything that arrives: bytes in `output`, JSON in `words`."""

    def __init__(
        self, trailer: RunningTrailer, path: str, token: str | None, **query: Any
    ) -> None:
        address = trailer.url.replace("http", "ws", 1) + f"/ws/workspaces/{path}/"
        headers = {"Authorization": f"Token {token}"} if token else {}
        self.output = bytearray()
        self.words: list[dict[str, Any]] = []
        self.code: int | None = None
        self._opening = connect(
            f"{address}?{urlencode(query, doseq=True)}",
            additional_headers=headers,
            proxy=None,
            compression=None,
            max_queue=4,
            ping_interval=None,
            close_timeout=2,
        )
        self._socket: Any = self._opening.__enter__()
        self._reads = threading.Event()
        self._reads.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        try:
            while True:
                self._reads.wait()
                frame = self._socket.recv()
                if isinstance(frame, bytes):
                    self.output += frame
                else:
                    self.words.append(json.loads(frame))
        except ConnectionClosed as why:
            self.code = why.rcvd.code if why.rcvd else 1006

    # --- what a user does ---

    def type(self, text: str) -> None:
        self._socket.send(text.encode())

    def say(self, **words: Any) -> None:
        self._socket.send(json.dumps(words))

    def pause(self) -> None:
        """Stop reading, as a tab in the background may."""
        self._reads.clear()

    def go_on(self) -> None:
        self._reads.set()

    def close(self, code: int = 1000) -> None:
        self._reads.set()
        self._socket.close(code)
        self._reader.join(5)

    def cut(self) -> None:
        """As when the network goes: no closing word."""
        self._socket.socket.shutdown(sockets.SHUT_RDWR)
        self._reader.join(5)

    # --- what a user sees ---

    def sees(self, text: str, timeout: float = 15) -> str:
        def seen() -> bool:
            assert text.encode() in self.output, f"{self.output[-300:]!r} {self.words}"
            return True

        eventually(seen, timeout, f"no {text!r}")
        return self.output.decode(errors="replace")

    def hears(self, word: str, timeout: float = 15) -> Any:
        def heard() -> list[Any]:
            found = [words[word] for words in self.words if word in words]
            assert found or self.code is None, f"closed with {self.code} after {self.words}"
            return found

        return eventually(heard, timeout, f"no {word}")[-1]

    def ends(self, timeout: float = 15) -> int:
        eventually(lambda: self.code is not None, timeout, "the socket stays open")
        assert self.code is not None
        return self.code
