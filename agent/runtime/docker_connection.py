"""One hijacked connection to a Docker engine: bytes both ways, cut by any thread."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.errors import EngineError
from agent.runtime.docker_client import RecordingClient, own_error
from agent.runtime.docker_streams import Dechunker, Demultiplexer, Plain
from agent.runtime.session_port import ExecRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ: Final = 64 * 1024


class Connection:
    """A hijacked connection; what came together with the answer's head is not lost."""

    def __init__(
        self, client: RecordingClient, response: Any, unwrap: Plain | Demultiplexer
    ) -> None:
        self._client = client
        self._response = response
        raw = response.raw._fp
        self._source = raw.fp
        chunked = bool(getattr(raw, "chunked", False))
        self._unwrap = (Dechunker(), unwrap) if chunked else (unwrap,)
        self._socket = _socket_of(self._source)
        self._socket.settimeout(None)
        self._closed = False

    def read(self) -> bytes:
        """Something, or nothing at the end."""
        while not any(layer.ended for layer in self._unwrap):
            try:
                data = self._source.read1(_READ)
            except (OSError, ValueError) as problem:
                if self._closed:
                    return b""
                raise own_error(problem) from problem
            if not data:
                return b""
            for layer in self._unwrap:
                data = layer.feed(data)
            if data:
                return bytes(data)
        return b""

    def write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (OSError, ValueError) as problem:
            if not self._closed:
                raise own_error(problem) from problem

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        # Each by name: left to the collector, their file descriptors would pile up. A part that
        # another one closed already says so with an error.
        for part in (self._response, self._source, self._socket, self._client):
            with suppress(OSError, ValueError):
                part.close()

    def __iter__(self) -> Iterator[bytes]:
        while data := self.read():
            yield data


class DockerTerminal:
    """A connection with a way to change the window's size and to ask for the exit code."""

    def __init__(
        self,
        connection: Connection,
        *,
        resize: Callable[[int, int], object],
        exit_code: Callable[[], int | None],
        record: ExecRecord | None = None,
    ) -> None:
        self._connection = connection
        self._resize = resize
        self._exit_code = exit_code
        self._first = b""
        self.record = record or ExecRecord(container_id="", exec_id="")

    def learned(self, *, inner_pid: int, host_pid: int, first: bytes) -> None:
        """What is known of the process now that it runs; `first` is the first thing to read."""
        self.record = msgspec.structs.replace(self.record, inner_pid=inner_pid, host_pid=host_pid)
        self._first = first

    def read(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        return self._connection.read()

    def write(self, data: bytes) -> None:
        self._connection.write(data)

    def resize(self, columns: int, rows: int) -> None:
        # Too early or too late: the next size will fit.
        with suppress(EngineError):
            self._resize(columns, rows)

    def exit_code(self) -> int | None:
        return self._exit_code()

    def close(self) -> None:
        self._connection.close()


def _socket_of(source: Any) -> Any:
    """The socket beneath a buffered reader; TLS has its own kind."""
    raw = source.raw
    return getattr(raw, "_sock", None) or raw
