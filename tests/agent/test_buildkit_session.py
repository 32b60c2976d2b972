"""What the agent answers an engine that builds: secrets by name, one registry's password."""

from __future__ import annotations

import os

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived

from agent.engine_requests import Credential
from agent.errors import EngineUnavailable
from agent.runtime.buildkit_session import METHODS, BuildSession
from agent.runtime.protobuf import Malformed, Message, bytes_field, number_field

GET_SECRET, CREDENTIALS, HEALTH = METHODS
OK, NOT_FOUND, UNKNOWN = "0", "5", "12"
CREDENTIAL = Credential(server="reg.example:5000", username="robot", password="p4ss")


class Engine:
    """The other side: it asks as BuildKit does, in pieces of any size."""

    def __init__(self, session: BuildSession, piece: int = 1 << 20) -> None:
        self._session = session
        self._piece = piece
        self._http = H2Connection(config=H2Configuration(client_side=True))
        self._http.initiate_connection()
        self._http.receive_data(session.begin())
        self._stream = -1

    def ask(self, method: str, message: bytes = b"") -> tuple[str, bytes]:
        """The gRPC status and the message."""
        self._stream += 2
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", method)]
        self._http.send_headers(self._stream, [*head, ("content-type", "application/grpc")])
        framed = b"\0" + len(message).to_bytes(4, "big") + message
        self._http.send_data(self._stream, framed, end_stream=True)
        status, body, is_over = "", b"", False
        while not is_over:
            events = self._http.receive_data(self._exchanged())
            assert events, "the session says nothing more"
            for event in events:
                if isinstance(event, DataReceived):
                    body += event.data
                    size = event.flow_controlled_length
                    self._http.acknowledge_received_data(size, event.stream_id)
                elif isinstance(event, ResponseReceived | TrailersReceived):
                    found = dict(event.headers).get(b"grpc-status", b"").decode()
                    status = found or status
                elif isinstance(event, StreamEnded):
                    is_over = True
        return status, body[5:]

    def ask_and_take_back(self, method: str, message: bytes) -> None:
        """In one packet, as after a cancelled step."""
        self._stream += 2
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", method)]
        self._http.send_headers(self._stream, head)
        framed = b"\0" + len(message).to_bytes(4, "big") + message
        self._http.send_data(self._stream, framed, end_stream=True)
        self._http.reset_stream(self._stream)
        self._http.receive_data(self._exchanged())

    def _exchanged(self) -> bytes:
        sent, answer = self._http.data_to_send(), b""
        for at in range(0, len(sent), self._piece):
            answer += self._session.feed(sent[at : at + self._piece])
        return answer


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_secret_is_given_by_its_name(piece: int) -> None:
    session = BuildSession({"token": "s3cret", "other": "x"}, None)
    engine = Engine(session, piece)
    status, message = engine.ask(GET_SECRET, bytes_field(1, b"token"))
    assert (status, Message(message).text(1)) == (OK, "s3cret")
    assert session.missing == []


def test_a_secret_larger_than_the_window_comes_whole() -> None:
    value = os.urandom(48 * 1024).hex()[: 64 * 1024]
    engine = Engine(BuildSession({"big": value}, None))
    for _ in range(3):
        status, message = engine.ask(GET_SECRET, bytes_field(1, b"big"))
        assert (status, Message(message).text(1)) == (OK, value)


def test_one_that_is_not_there_is_not_found_and_noted() -> None:
    session = BuildSession({"token": "s3cret"}, None)
    assert Engine(session).ask(GET_SECRET, bytes_field(1, b"tokens")) == (NOT_FOUND, b"")
    assert session.missing == ["tokens"]


def test_the_engine_hears_that_the_session_lives() -> None:
    assert Engine(BuildSession({}, None)).ask(HEALTH) == (OK, number_field(1, 1))


@pytest.mark.parametrize("method", ["/moby.filesync.v1.FileSync/DiffCopy", "/x", ""])
def test_nothing_else_is_offered(method: str) -> None:
    engine = Engine(BuildSession({"token": "s3cret"}, CREDENTIAL))
    assert engine.ask(method or "/", bytes_field(1, b"token")) == (UNKNOWN, b"")


@pytest.mark.parametrize(
    ("server", "asked", "is_given"),
    [
        ("reg.example:5000", "reg.example:5000", True),
        ("docker.io", "registry-1.docker.io", True),
        ("registry-1.docker.io", "registry-1.docker.io", True),
        ("registry-1.docker.io", "auth.docker.io", False),
        ("localreg", "LocalReg", True),
        ("docker.io", "LocalReg", False),
        ("docker.io", "team", False),
        ("docker.io", "localreg:5000", False),
        ("docker.io", "Docker.io", False),
        ("docker.io", "REGISTRY-1.docker.io", False),
        ("docker.io", "", False),
        ("", "", False),
        ("https://reg.example", "reg.example", False),
        ("reg.example", "reg.example/v2", False),
        ("reg.example:5000", "reg.example", False),
        ("reg.example", "reg.example.evil.test", False),
        ("reg.example:5000", "registry-1.docker.io", False),
        ("docker.io", "evil.test", False),
    ],
)
def test_a_password_goes_to_its_own_server_only(server: str, asked: str, is_given: bool) -> None:
    credential = Credential(server=server, username="robot", password="p4ss")
    engine = Engine(BuildSession({}, credential))
    status, message = engine.ask(CREDENTIALS, bytes_field(1, asked.encode()))
    found = Message(message)
    assert status == OK
    assert (found.text(1), found.text(2)) == (("robot", "p4ss") if is_given else ("", ""))


def test_what_is_no_message_is_refused_and_the_session_goes_on() -> None:
    engine = Engine(BuildSession({"token": "s3cret"}, None))
    assert engine.ask(GET_SECRET, b"\x0a\xff")[0] == "3"
    assert engine.ask(GET_SECRET, bytes_field(1, b"token"))[0] == OK


@pytest.mark.parametrize("name", [b"token", b"tokens"])
def test_a_question_that_is_taken_back_ends_nothing_but_itself(name: bytes) -> None:
    engine = Engine(BuildSession({"token": "s3cret"}, None))
    engine.ask_and_take_back(GET_SECRET, bytes_field(1, name))
    assert engine.ask(GET_SECRET, bytes_field(1, b"token"))[0] == OK


def test_what_is_no_http_ends_the_session() -> None:
    session = BuildSession({}, None)
    session.begin()
    with pytest.raises(EngineUnavailable, match="broke the build's session off"):
        session.feed(b"HTTP/1.1 500 Internal Server Error\r\n\r\n" * 3)


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\x0b", b"\x08" + b"\xff" * 11])
def test_a_message_that_is_cut_or_unknown_is_told(data: bytes) -> None:
    with pytest.raises(Malformed):
        Message(data)


def test_numbers_of_a_fixed_size_and_repeated_fields_are_read() -> None:
    data = b"\x09" + bytes(8) + b"\x15" + bytes(4) + bytes_field(3, b"a") + bytes_field(3, b"b")
    message = Message(data + number_field(4, 300))
    assert list(message.all(3)) == [b"a", b"b"]
    assert (message.text(3), message.flag(4), message.flag(5)) == ("b", True, False)
