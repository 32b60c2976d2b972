"""The HTTP client and the nudge socket: what they send, and how each answer is understood."""

import threading
from collections.abc import Callable, Iterator

import pytest
from websockets.sync.server import Server, ServerConnection, serve

from agent.errors import LogOffsetMoved, Revoked, ServerError, ServerUnavailable, Superseded
from agent.protocol.report import Report
from agent.protocol.session import EnrolRequest
from agent.server.http import HttpServer
from agent.server.socket import ServerSocket, is_nudge, socket_url
from tests.agent.fake_server import ENROLMENT, HOST_KEY, TOKEN, FakeServer
from tests.ground.wait import eventually


@pytest.fixture
def client(fake_server: FakeServer) -> HttpServer:
    return HttpServer(fake_server.url, token=TOKEN)


def test_an_enrolment_token_buys_an_identity(fake_server: FakeServer) -> None:
    stranger = HttpServer(fake_server.url)
    assert stranger.enrol(EnrolRequest(token=ENROLMENT)).host_key == HOST_KEY
    with pytest.raises(Revoked):
        stranger.enrol(EnrolRequest(token="wrong"))


def test_an_unchanged_state_is_not_sent_again(fake_server: FakeServer, client: HttpServer) -> None:
    fake_server.desire()
    first = client.fetch_state(epoch=0, etag="")
    assert first is not None
    assert client.fetch_state(epoch=0, etag=first.etag) is None


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, b"", Revoked),
        (409, b'{"code": "superseded", "message": "newer"}', Superseded),
        (409, b'{"code": "conflict"}', ServerError),
        (400, b"<html>", ServerError),
        (500, b"<html>", ServerUnavailable),
        (502, b"", ServerUnavailable),
        (302, b"", ServerUnavailable),
        (429, b"", ServerUnavailable),
        (200, b"<html>", ServerUnavailable),
        (200, b"{}", ServerUnavailable),
    ],
)
def test_each_bad_answer_has_its_meaning(
    fake_server: FakeServer,
    client: HttpServer,
    status: int,
    body: bytes,
    error: type[ServerError],
) -> None:
    fake_server.answers["/report"] = (status, body)
    with pytest.raises(error) as caught:
        client.report(Report(epoch=1, items=()))
    assert type(caught.value) is error


def test_a_dead_server_is_unavailable(fake_server: FakeServer, client: HttpServer) -> None:
    fake_server.stop()
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        client.fetch_state(epoch=1, etag="")


def test_a_log_goes_on_where_the_server_says(fake_server: FakeServer, client: HttpServer) -> None:
    epoch = fake_server.epoch
    assert client.append_log("b", epoch=epoch, offset=0, data=b"12345") == 5
    assert client.append_log("b", epoch=epoch, offset=2, data=b"3456") == 6
    with pytest.raises(LogOffsetMoved) as caught:
        client.append_log("b", epoch=epoch, offset=9, data=b"late")
    assert caught.value.offset == 6


def test_only_a_nudge_is_a_nudge() -> None:
    assert is_nudge('{"nudge": true}')
    for frame in ('{"nudge": false}', '{"log": 1}', "[1]", "no json", b"\x00"):
        assert not is_nudge(frame)


def test_the_socket_lives_beside_the_server() -> None:
    assert socket_url("http://a:1/") == "ws://a:1/ws/agent/"
    assert socket_url("https://a.example/trailer") == "wss://a.example/trailer/ws/agent/"


class Nudger:
    """A socket server that keeps its connections and their headers."""

    def __init__(self) -> None:
        self.connections: list[ServerConnection] = []
        self.on_frame: Callable[[str | bytes], None] = lambda frame: None
        self.server: Server = serve(self._keep, "127.0.0.1", 0)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _keep(self, connection: ServerConnection) -> None:
        self.connections.append(connection)
        for frame in connection:
            self.on_frame(frame)


@pytest.fixture
def nudger() -> Iterator[Nudger]:
    nudger = Nudger()
    yield nudger
    nudger.server.shutdown()


def test_nudges_arrive_and_a_lost_socket_is_opened_again(nudger: Nudger) -> None:
    stop, nudges = threading.Event(), []
    listener = ServerSocket(
        f"http://127.0.0.1:{nudger.port}",
        token=lambda: TOKEN,
        epoch=lambda: 7,
        on_nudge=lambda: nudges.append(1),
        stop=stop,
    )
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: len(nudges) == 1, message="connecting counts as a nudge")
        request = nudger.connections[0].request
        assert request is not None
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.headers["Trailer-Epoch"] == "7"
        nudger.connections[0].send('{"unknown": 1}')
        nudger.connections[0].send('{"nudge": true}')
        eventually(lambda: len(nudges) == 2)
        nudger.connections[0].close()
        eventually(lambda: len(nudger.connections) == 2)
        eventually(lambda: len(nudges) == 3)
    finally:
        stop.set()
        thread.join(5)
