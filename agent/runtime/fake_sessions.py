"""Logs, exec and attach of the in-memory engine; programs there only repeat what they are told."""

from __future__ import annotations

import itertools
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.errors import Conflict, NotFound
from agent.runtime.inner_network import PortClosed
from agent.runtime.session_port import (
    Change,
    ContainerRun,
    ExecRecord,
    LogRequest,
    PathChange,
    PathFacts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.observed import ObservedContainer


class FakeLog(Iterator[bytes]):
    """Reads on while its container runs, and waits for more."""

    def __init__(self, engine: FakeSessions, container_id: str, request: LogRequest) -> None:
        self._engine = engine
        self._id = container_id
        self._request = request
        lines = engine.log_lines.get(container_id, [])
        since = int(request.since or 0)
        wanted = len(lines) if request.tail is None else request.tail
        self._at = max(since, len(lines) - wanted)
        self.closed = False

    def __next__(self) -> bytes:
        with self._engine.said:
            while not self.closed:
                lines = self._engine.log_lines.get(self._id, [])
                if self._at < len(lines):
                    found, self._at = lines[self._at :], len(lines)
                    return b"".join(found)
                if not self._request.follow or not self._engine.is_up(self._id):
                    break
                self._engine.said.wait(0.02)
        raise StopIteration

    def close(self) -> None:
        with self._engine.said:
            self.closed = True
            self._engine.said.notify_all()


class FakeTerminal:
    """Repeats its input. A line `exit N` ends it; a line `flood` makes it talk without end."""

    def __init__(self, record: ExecRecord, command: tuple[str, ...]) -> None:
        self.record = record
        self.command = command
        self.sizes: list[tuple[int, int]] = []
        self.produced = 0
        self.ended = False
        self.closed = False
        self._code: int | None = None
        self._output = b""
        self._floods = False
        self._turn = threading.Condition()

    def read(self) -> bytes:
        with self._turn:
            while not (self._output or self._floods or self.ended or self.closed):
                self._turn.wait()
            if self.closed or (self.ended and not self._output):
                return b""
            data, self._output = self._output or b"y\n" * 2048, b""
            self.produced += len(data)
            return data

    def write(self, data: bytes) -> None:
        with self._turn:
            if data.startswith(b"exit"):
                self.ended, self._code = True, int(data[4:] or 0)
            elif data.startswith(b"flood"):
                self._floods = True
            else:
                self._output += data
            self._turn.notify_all()

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def exit_code(self) -> int | None:
        return self._code

    def kill(self) -> None:
        with self._turn:
            self.ended, self._code = True, 137
            self._floods, self._output = False, b""
            self._turn.notify_all()

    def close(self) -> None:
        with self._turn:
            self.closed = True
            self._turn.notify_all()


class FakeSessions(ABC):
    """`terminals` are all that were ever started, by exec id; attached ones by container id."""

    containers: dict[str, ObservedContainer]

    def __init__(self) -> None:
        self.log_lines: dict[str, list[bytes]] = {}
        self.said = threading.Condition()
        self.terminals: dict[str, FakeTerminal] = {}
        # Port of a container -> port of this machine where a test listens.
        self.ports: dict[int, int] = {}
        self.ended_execs: list[ExecRecord] = []
        # Container -> path -> size of what it wrote; None is a folder.
        self.written: dict[str, dict[str, int | None]] = {}
        self.deleted: dict[str, list[str]] = {}
        self.mount_targets: tuple[str, ...] = ()
        self._exec_numbers = itertools.count(1)

    # --- by hand ---

    def say(self, container_id: str, text: str) -> None:
        with self.said:
            self.log_lines.setdefault(container_id, []).append(text.encode())
            self.said.notify_all()

    def is_up(self, container_id: str) -> bool:
        container = self.containers.get(container_id)
        return container is not None and container.state == "running"

    def running_terminals(self) -> list[FakeTerminal]:
        return [terminal for terminal in self.terminals.values() if not terminal.ended]

    # --- the port ---

    def container_run(self, container_id: str) -> ContainerRun:
        self._call("container_run")
        container = self._get(container_id)
        return ContainerRun(
            id=container.id,
            name=container.name,
            is_running=container.state == "running",
            workspace_id=container.labels.get("trailer.workspace", ""),
            finished_at=str(len(self.log_lines.get(container_id, []))),
            exit_code=container.exit_code or 0,
            mount_targets=self.mount_targets,
        )

    def container_logs(self, container_id: str, request: LogRequest) -> FakeLog:
        self._call("container_logs")
        self._get(container_id)
        return FakeLog(self, container_id, request)

    def start_exec(
        self, container_id: str, command: tuple[str, ...], tell: Callable[[ExecRecord], None]
    ) -> FakeTerminal:
        self._call("start_exec")
        if not self.is_up(self._get(container_id).id):
            raise Conflict(f"Container {container_id} is not running")
        exec_id = f"exec-{next(self._exec_numbers)}"
        record = ExecRecord(container_id=container_id, exec_id=exec_id, inner_pid=7)
        tell(record)
        self.terminals[exec_id] = FakeTerminal(record, command)
        return self.terminals[exec_id]

    def end_exec(self, record: ExecRecord) -> bool:
        self._call("end_exec")
        self.ended_execs.append(record)
        terminal = self.terminals.get(record.exec_id)
        if terminal is not None:
            terminal.kill()
        return True

    def attach_container(self, container_id: str) -> FakeTerminal:
        self._call("attach_container")
        record = ExecRecord(container_id=container_id, exec_id=container_id)
        self.terminals[container_id] = FakeTerminal(record, ())
        return self.terminals[container_id]

    def connect_port(self, run: ContainerRun, port: int) -> socket.socket:
        self._call("connect_port")
        if port not in self.ports:
            raise PortClosed(f"Nothing listens on port {port} of this workspace.")
        return socket.create_connection(("127.0.0.1", self.ports[port]))

    def container_changes(self, container_id: str) -> tuple[list[PathChange], bool]:
        self._call("container_changes")
        self._get(container_id)
        written = self.written.get(container_id, {})
        changes = [PathChange(path, Change.ADDED) for path in written]
        gone = self.deleted.get(container_id, [])
        return [*changes, *(PathChange(path, Change.DELETED) for path in gone)], True

    def writable_size(self, container_id: str) -> int:
        self._call("writable_size")
        return sum(size or 0 for size in self.written.get(container_id, {}).values())

    def path_facts(self, container_id: str, path: str) -> PathFacts:
        self._call("path_facts")
        written = self.written.get(container_id, {})
        if path not in written:
            raise NotFound(f"Could not find the file {path} in container {container_id}")
        size = written[path]
        return PathFacts(size or 0, size is not None)

    # --- of the engine beside ---

    @abstractmethod
    def _call(self, verb: str) -> None: ...

    @abstractmethod
    def _get(self, container_id: str) -> ObservedContainer: ...
