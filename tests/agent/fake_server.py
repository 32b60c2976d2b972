"""A small server that speaks the agent's protocol over HTTP, for tests without Django."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from agent.protocol.report import (
    BuildStatus,
    CycleReport,
    ImageObserved,
    Report,
    ReportItem,
    ReportReply,
    ResourceStatus,
    TombstoneDone,
    WorkspaceEvent,
    WorkspaceStatus,
)
from agent.protocol.session import (
    EnrolReply,
    EnrolRequest,
    Heartbeat,
    HeartbeatReply,
    SessionReply,
    TokenReply,
    TokenRequest,
)
from agent.protocol.state import HostSettings, HostState, encode_state

HOST_ID = "11111111-1111-4111-8111-111111111111"
HOST_KEY = "a-key-only-the-tests-know"
TOKEN = "agent-token"
ENROLMENT = "enrolment-token"


@dataclass
class Book:
    """Everything the agent said, in order of arrival."""

    items: list[ReportItem] = field(default_factory=list)
    heartbeats: list[Heartbeat] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    sessions: int = 0


class FakeServer:
    """`answers` forces a status (and body) for a path: the way tests break the server."""

    def __init__(self) -> None:
        self.book = Book()
        self.settings = HostSettings(reconcile_interval=1.0, heartbeat_interval=1.0)
        self.answers: dict[str, tuple[int, bytes]] = {}
        # A batch of output takes this long to be stored.
        self.log_seconds = 0.0
        self.epoch = 0
        # Those that are good; the last one is the newest. A due one is replaced on request.
        self.tokens = [TOKEN]
        self.token_due = False
        self.lose_new_tokens = False
        self.refused: list[str] = []
        self._lock = threading.Lock()
        self._body = b""
        self._version = 0
        self.raw_state: bytes | None = None
        # Stands in for the socket: called after each new document.
        self.nudge: Callable[[], None] = lambda: None
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    # --- life ---

    def start(self) -> Self:
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    # --- what the host should have ---

    def desire(self, **lists: Any) -> None:
        """Publish a new document; whatever is not named is empty."""
        with self._lock:
            self._version += 1
            state = HostState(
                host_id=HOST_ID,
                protocol=1,
                state_epoch=1,
                version=self._version,
                settings=self.settings,
                **lists,
            )
            self._body = encode_state(state)
        self.nudge()

    # --- what the agent said ---

    def all(self, kind: type[Any]) -> list[Any]:
        with self._lock:
            return [item for item in self.book.items if isinstance(item, kind)]

    def status(self, workspace_id: str) -> WorkspaceStatus | None:
        known = [i for i in self.all(WorkspaceStatus) if i.workspace_id == workspace_id]
        return known[-1] if known else None

    def status_word(self, workspace_id: str) -> str:
        status = self.status(workspace_id)
        return status.status if status else ""

    def events(self, workspace_id: str) -> list[WorkspaceEvent]:
        return [i for i in self.all(WorkspaceEvent) if i.workspace_id == workspace_id]

    def build(self, build_id: str) -> BuildStatus | None:
        known = [i for i in self.all(BuildStatus) if i.build_id == build_id]
        return known[-1] if known else None

    def resource(self, object_id: str) -> ResourceStatus | None:
        known = [i for i in self.all(ResourceStatus) if i.object_id == object_id]
        return known[-1] if known else None

    def image(self, image_id: str) -> ImageObserved | None:
        known = [i for i in self.all(ImageObserved) if i.image_id == image_id]
        return known[-1] if known else None

    def tombstone(self, tombstone_id: str) -> TombstoneDone | None:
        known = [i for i in self.all(TombstoneDone) if i.tombstone_id == tombstone_id]
        return known[-1] if known else None

    def cycles(self) -> list[CycleReport]:
        return self.all(CycleReport)

    # --- the protocol ---

    def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/agent/v1")
        with self._lock:
            self.book.requests.append(f"{method} {path}")
            forced = self.answers.get(path)
            if forced:
                return forced[0], forced[1], {}
            if path == "/enrol":
                return self._enrol(body)
            if not self._knows(headers.get("Authorization", "").removeprefix("Bearer ")):
                return _problem(401, "unauthorized")
            if path == "/token":
                return self._new_token(body)
            if path == "/check":
                return 200, self._body, {}
            if path == "/session":
                self.epoch += 1
                self.book.sessions += 1
                reply = SessionReply(
                    epoch=self.epoch, host_id=HOST_ID, host_name="h", settings=self.settings
                )
                return 200, msgspec.json.encode(reply), {}
            if path == "/state":
                return self._state(headers)
            if path == "/report":
                return self._report(body)
            if path == "/heartbeat":
                return self._heartbeat(body)
            if path.startswith("/builds/"):
                if int(headers["Trailer-Epoch"]) != self.epoch:
                    return _problem(409, "superseded")
                return self._log(path.split("/")[2], int(parse_qs(parts.query)["offset"][0]), body)
        return _problem(404, "not_found")

    def _knows(self, token: str) -> bool:
        """As the real one: the first use of a new one ends the one before it."""
        if token not in self.tokens:
            self.refused.append(token)
            return False
        if token == self.tokens[-1] and len(self.tokens) > 1:
            self.tokens, self.token_due = [token], False
        return True

    def _new_token(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if msgspec.json.decode(body, type=TokenRequest).epoch != self.epoch:
            return _problem(409, "superseded")
        number = self.book.requests.count("POST /token")
        self.tokens = [self.tokens[0], f"agent-token-{number}"]
        if self.lose_new_tokens:
            return _problem(502, "lost")
        return 200, msgspec.json.encode(TokenReply(token=self.tokens[-1])), {}

    def _enrol(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if msgspec.json.decode(body, type=EnrolRequest).token != ENROLMENT:
            return _problem(401, "unauthorized")
        reply = EnrolReply(token=TOKEN, host_id=HOST_ID, host_name="h", host_key=HOST_KEY)
        return 200, msgspec.json.encode(reply), {}

    def _state(self, headers: Mapping[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if int(headers["Trailer-Epoch"]) != self.epoch:
            return _problem(409, "superseded")
        body = self._body if self.raw_state is None else self.raw_state
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        if headers.get("If-None-Match") == etag:
            return 304, b"", {"ETag": etag}
        return 200, body, {"ETag": etag}

    def _report(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        report = msgspec.json.decode(body, type=Report)
        if report.epoch != self.epoch:
            return _problem(409, "superseded")
        self.book.items.extend(report.items)
        reply = ReportReply(accepted=tuple(item.seq for item in report.items))
        return 200, msgspec.json.encode(reply), {}

    def _heartbeat(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        beat = msgspec.json.decode(body, type=Heartbeat)
        if beat.epoch != self.epoch:
            return _problem(409, "superseded")
        self.book.heartbeats.append(beat)
        reply = HeartbeatReply(settings=self.settings, token_due=self.token_due)
        return 200, msgspec.json.encode(reply), {}

    def _log(self, build_id: str, offset: int, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        time.sleep(self.log_seconds)
        known = self.book.logs.get(build_id, b"")
        if offset > len(known):
            return 409, json.dumps({"code": "offset", "offset": len(known)}).encode(), {}
        # Like the real one: what lies before its end counts as sent again, and is not stored.
        known = self.book.logs[build_id] = known + body[len(known) - offset :]
        return 200, json.dumps({"offset": len(known)}).encode(), {}


def _problem(status: int, code: str) -> tuple[int, bytes, dict[str, str]]:
    return status, json.dumps({"code": code, "message": f"The fake says {code}."}).encode(), {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        status, answer, headers = self.fake.handle(
            method, self.path, dict(self.headers.items()), body
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def handle(self) -> None:
        """An agent that is killed leaves without a word."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
