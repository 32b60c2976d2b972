"""What realtime sessions need of a container engine: logs, processes and their end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, kw_only=True)
class ContainerRun:
    """One container as sessions see it; `finished_at` is the end of the run before this one."""

    id: str
    name: str
    is_running: bool
    workspace_id: str = ""
    has_tty: bool = False
    started_at: str = ""
    finished_at: str = ""
    exit_code: int = 0
    # Of its first process, as the host numbers it.
    pid: int = 0
    addresses: tuple[str, ...] = ()
    # Where volumes, folders of the host and memory file systems lie over its own files.
    mount_targets: tuple[str, ...] = ()


class Change(StrEnum):
    CHANGED = "changed"
    ADDED = "added"
    DELETED = "deleted"


class PathChange(NamedTuple):
    """A path of a container that its image does not have so."""

    path: str
    change: Change


class PathFacts(NamedTuple):
    size_bytes: int
    is_file: bool


@dataclass(frozen=True, kw_only=True)
class LogRequest:
    """`tail` None means all lines; `since` is an engine's timestamp."""

    tail: int | None = None
    since: str = ""
    follow: bool = False
    timestamps: bool = False


class ExecRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How to find a started process again: in the engine, on the host, inside the container.

    A pid of 0 is one that could not be learned.
    """

    container_id: str
    exec_id: str
    host_pid: int = 0
    inner_pid: int = 0


class ByteStream(Protocol):
    """Bytes of a log; another thread may close it."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class Terminal(Protocol):
    """A connection to a process. Closing it leaves the process alone."""

    def read(self) -> bytes:
        """Some bytes; none at the end. Blocks."""
        ...

    def write(self, data: bytes) -> None:
        """Blocks while the process does not read."""
        ...

    def resize(self, columns: int, rows: int) -> None: ...

    def exit_code(self) -> int | None:
        """Of a process that has ended; None when the engine does not know."""
        ...

    def close(self) -> None: ...


class ExecTerminal(Terminal, Protocol):
    @property
    def record(self) -> ExecRecord: ...


class SessionRuntime(Protocol):
    def container_run(self, container_id: str) -> ContainerRun: ...

    def container_logs(self, container_id: str, request: LogRequest) -> ByteStream: ...

    def start_exec(
        self, container_id: str, command: tuple[str, ...], tell: Callable[[ExecRecord], None]
    ) -> ExecTerminal:
        """With a terminal; an empty command is the container's best shell.

        `tell` is called before the process starts, and again with all that was learned of it.
        """
        ...

    def end_exec(self, record: ExecRecord) -> bool:
        """End every process of the terminal's process session. False: some may be left."""
        ...

    def attach_container(self, container_id: str) -> Terminal: ...

    def connect_port(self, run: ContainerRun, port: int) -> socket.socket:
        """A connection to a program inside; PortClosed when none listens there."""
        ...

    def container_changes(self, container_id: str) -> tuple[list[PathChange], bool]:
        """What differs from the image, and whether that is all of it."""
        ...

    def writable_size(self, container_id: str) -> int:
        """Bytes of the container's own layer; the engine may have to count them."""
        ...

    def path_facts(self, container_id: str, path: str) -> PathFacts:
        """NotFound for a path that is gone."""
        ...
