"""A TCP relay in front of a service that cuts or slows connections in the middle of an answer."""

import socket
import threading
from contextlib import suppress
from typing import Self

from tests.ground import process
from tests.ground.hostnet import SHARED_PORTS

_PIECE = 16 * 1024
_CRAWL_SECONDS = 0.2


class CuttingRelay:
    """Passes bytes on in both directions. With `cut_after`, each connection is closed once so many
    bytes of answers have passed: requests get through, long answers never do. With `slow_after`
    they go on at a crawl then."""

    def __init__(self, target_port: int) -> None:
        self.port = process.free_port(*SHARED_PORTS)
        self.address = f"{process.LOOPBACK}:{self.port}"
        self.cut_after: int | None = None
        self.slow_after: int | None = None
        self.cuts = 0
        self._slow: list[socket.socket] = []
        self._target_port = target_port
        self._listener = socket.create_server(("0.0.0.0", self.port))

    def start(self) -> Self:
        threading.Thread(target=self._accept, name="relay", daemon=True).start()
        return self

    def crawls(self) -> bool:
        """Whether a client still takes a slow answer."""
        return any(sink.fileno() != -1 for sink in self._slow)

    def stop(self) -> None:
        # Without this the thread that accepts would keep the port.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((process.LOOPBACK, self._target_port), 5)
            except OSError:
                client.close()
                continue
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pass_on, args=(source, sink, answers), daemon=True
                ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(_PIECE):
                passed += len(data)
                if answers and self.cut_after is not None and passed > self.cut_after:
                    self.cuts += 1
                    break
                if answers and self.slow_after is not None and passed > self.slow_after:
                    self._slow.append(sink)
                    threading.Event().wait(_CRAWL_SECONDS)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
