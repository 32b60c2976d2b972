"""Servers on loopback that stand for public addresses, and the names that lead there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from agent.fetch.client import HttpFetcher

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Sequence

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "93.184.216.35"
Handler: TypeAlias = Callable[[socket.socket, bytes], None]


class Listener:
    """A server on loopback: it keeps each request's head, and answers from a function."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self.heads: list[str] = []
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.context: ssl.SSLContext | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                held, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._one, args=(held,), daemon=True).start()

    def _one(self, held: socket.socket) -> None:
        with suppress(OSError):
            if self.context is not None:
                held = self.context.wrap_socket(held, server_side=True)
            with held:
                data = b""
                while b"\r\n\r\n" not in data:
                    piece = held.recv(4096)
                    if not piece:
                        return
                    data += piece
                self.heads.append(data.decode())
                self._handle(held, data)

    def close(self) -> None:
        # Its thread waits in it, and would keep it open.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def listening(handle: Handler) -> Iterator[Listener]:
    found = Listener(handle)
    try:
        yield found
    finally:
        found.close()


def says(body: bytes = b"hello", status: str = "200 OK", *headers: str) -> Handler:
    head = "".join(f"{line}\r\n" for line in (f"Content-Length: {len(body)}", *headers))

    def handle(held: socket.socket, _: bytes) -> None:
        held.sendall(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)

    return handle


def redirects(location: str) -> Handler:
    return says(b"", "302 Found", f"Location: {location}")


class World:
    """Names, and which listener stands for which public address and port."""

    def __init__(
        self, names: dict[str, Sequence[str]], places: dict[tuple[str, int], Listener]
    ) -> None:
        self.names = names
        self.places = places
        self.connected: list[tuple[str, int]] = []
        self.asked: list[str] = []

    def resolve(self, host: str, _: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return self.names[host]

    def connect(self, held: socket.socket, address: tuple[str, int]) -> None:
        self.connected.append(address)
        stand_in = self.places.get(address)
        held.connect(("127.0.0.1", stand_in.port) if stand_in else address)

    def fetcher(self, *, own: Sequence[str] = ()) -> HttpFetcher:
        return HttpFetcher(resolve=self.resolve, connect=self.connect, own=lambda: own)
