"""The agent's sessions on an in-memory engine, and a server at the other end of the wire."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from agent.loop.target import Target
from agent.protocol.sessions import (
    Frame,
    FrameKind,
    Receipts,
    SessionClose,
    SessionControl,
    SessionOpen,
    decode_frame,
    encode_credit,
    encode_frame,
)
from agent.runtime.fake import FakeRuntime
from agent.sessions.containers import Containers
from agent.sessions.manager import Sessions
from agent.sessions.wire import Wire
from agent.store.database import Database
from agent.store.journal import Journal
from agent.store.previous_logs import PreviousLogs
from agent.store.terminals import TerminalFiles
from tests.agent.documents import document, workspace
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent.runtime.fake_sessions import FakeTerminal


class Stream:
    """One session as the server sees it. Not `greedy`: it takes no more than the first window."""

    def __init__(self, wire: Wire, number: int, *, greedy: bool) -> None:
        self._wire = wire
        self.number = number
        self.greedy = greedy
        self.output = b""
        self.words: list[SessionControl] = []
        self.end: SessionClose | None = None
        self._receipts = Receipts()

    def arrived(self, frame: Frame) -> None:
        if frame.kind is FrameKind.DATA:
            assert self._receipts.arrived(frame.payload), "sent without credit"
            self.output += frame.payload
            due = self._receipts.used(frame.payload) if self.greedy else 0
            if due:
                self.send(FrameKind.CREDIT, encode_credit(due))
        elif frame.kind is FrameKind.CONTROL:
            self.words.append(msgspec.json.decode(frame.payload, type=SessionControl))
        elif frame.kind is FrameKind.CLOSE:
            self.end = msgspec.json.decode(frame.payload, type=SessionClose)

    def send(self, kind: FrameKind, payload: bytes) -> None:
        self._wire.frame(encode_frame(Frame(kind, self.number, payload)))

    def type(self, text: str) -> None:
        self.send(FrameKind.DATA, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        size = SessionControl(resize=(columns, rows))
        self.send(FrameKind.CONTROL, msgspec.json.encode(size))

    def close(self, *, hold: bool = False) -> None:
        self.send(FrameKind.CLOSE, msgspec.json.encode(SessionClose(hold=hold)))

    def sees(self, text: str) -> None:
        eventually(lambda: text.encode() in self.output, 5, f"no {text!r}: {self.output[-200:]!r}")

    def opened(self) -> SessionControl:
        def first() -> bool:
            assert self.end is None, self.end
            return bool(self.words)

        eventually(first, 5, "not opened")
        return self.words[0]

    def ended(self) -> SessionClose:
        eventually(lambda: self.end is not None, 5, "it goes on")
        assert self.end is not None
        return self.end


class ServerEnd:
    """A connection; `hold_up` is what a network does that takes no more bytes."""

    def __init__(self, sessions: Sessions) -> None:
        self.streams: dict[int, Stream] = {}
        self.order: list[int] = []
        self.flows = threading.Event()
        self.flows.set()
        self.wire = Wire(sessions, self._received)

    def open(self, kind: str, *, greedy: bool = True, **fields: Any) -> Stream:
        number = len(self.streams) + 1
        stream = self.streams[number] = Stream(self.wire, number, greedy=greedy)
        request = SessionOpen(
            **{"kind": kind, "workspace_id": "w-web", "user": "olga", **fields},
        )
        stream.send(FrameKind.OPEN, msgspec.json.encode(request))
        return stream

    def _received(self, data: bytes) -> None:
        self.flows.wait()
        frame = decode_frame(data)
        assert frame is not None
        self.order.append(frame.stream)
        self.streams[frame.stream].arrived(frame)


class SessionScene:
    """Workspace `web` runs in a container of ours."""

    def __init__(self, folder: Path, **limits: float) -> None:
        self.runtime = FakeRuntime()
        database = Database(folder / "agent.sqlite3")
        self.journal = Journal(database)
        self.previous = PreviousLogs(folder, self.runtime)
        self.files = TerminalFiles(folder)
        target = Target(folder, database)
        target.accept(document(workspaces=(workspace("web"), workspace("other"))), etag="")
        self.sessions = Sessions(
            runtime=self.runtime,
            containers=Containers(self.runtime, self.journal, target),
            previous=self.previous,
            files=self.files,
            **limits,
        )
        self.container = self.add_container()
        self.server = ServerEnd(self.sessions)
        self._stop = threading.Event()
        self._loop = threading.Thread(target=lambda: self.sessions.run(self._stop), daemon=True)
        self._loop.start()

    def add_container(self, name: str = "trailer-web", *, owned: bool = True) -> str:
        container_id = self.runtime.add_container(name, labels={"trailer.workspace": "w-web"})
        if owned:
            self.journal.own(container_id, kind="workspace", object_id="w-web")
        return container_id

    def replace_container(self) -> str:
        self.runtime.remove_container(self.container, with_volumes=False)
        self.journal.disown(self.container)
        self.container = self.add_container()
        self.sessions.workspace_changed()
        return self.container

    def reconnect(self) -> ServerEnd:
        self.server.wire.lost()
        self.server = ServerEnd(self.sessions)
        return self.server

    def terminal(self) -> FakeTerminal:
        return next(reversed(self.runtime.terminals.values()))

    def stop(self) -> None:
        self._stop.set()
        self._loop.join(10)
        self.server.flows.set()
        self.server.wire.lost()
