"""Workspaces' URLs through the whole product: visitor, server, agent, container and back."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import requests
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.e2e.scenario import User
from tests.e2e.terminal_scene import agent_of, made_user
from tests.e2e.url_scene import Visitor, serving
from tests.ground.server import RunningTrailer
from tests.ground.url_image import ensure_app
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.engine import PrivateEngine

MIB = 1024 * 1024
# What a relay may grow by, however large a body is: windows, buffers and a garbage collector.
ALLOWED_GROWTH = 48 * MIB


@pytest.fixture(scope="module")
def user(engine: PrivateEngine) -> Iterator[User]:
    """One server with one open workspace for all tests here."""
    engine.clean()
    with closing(engine.client()) as client:
        ensure_app(client)
    trailer = RunningTrailer(engine.url)
    try:
        user = User(trailer.start())
        urls: list[dict[str, Any]] = [
            {"subdomain": "box"},
            {"subdomain": "mine", "auth": "owner"},
            {"subdomain": "ours", "auth": "users"},
            {"subdomain": "shut", "port": 9},
        ]
        user.box = serving(user, "box", *urls)  # type: ignore[attr-defined]
        visitor = Visitor(trailer)
        eventually(lambda: visitor.get("box").ok, 20, "the application does not answer")
        yield user
    finally:
        trailer.destroy()
        engine.clean()


@pytest.fixture
def visitor(user: User) -> Visitor:
    return Visitor(user.trailer)


def socket_to(visitor: Visitor, subdomain: str, **options: Any) -> Any:
    port = visitor.trailer.port
    return connect(
        f"ws://{subdomain}.localhost:{port}/ws",
        sock=_connection(port),
        proxy=None,
        max_size=None,
        **options,
    )


def _connection(port: int) -> Any:
    return socket.create_connection(("127.0.0.1", port))


def memory(user: User) -> int:
    processes = [*user.trailer.processes(), agent_of(user.trailer)]
    return sum(process.memory_info().rss for process in processes)


# --- bytes ---


def test_a_page_and_its_stream_arrive_as_they_are_sent(visitor: Visitor) -> None:
    assert "hello from the app" in visitor.get("box").text
    began = time.monotonic()
    with visitor.get("box", "/drip?4", stream=True) as reply:
        lines = [(line.decode(), time.monotonic() - began) for line in reply.iter_lines()]
    assert [line for line, _ in lines] == ["line 0", "line 1", "line 2", "line 3"]
    assert lines[-1][1] - lines[0][1] > 0.5, "nothing was streamed, it all came at once"


def test_an_answer_begins_before_its_request_has_ended(visitor: Visitor) -> None:
    heard: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for number in range(3):
            yield f"piece {number} ".encode()
            time.sleep(0.2)

    with visitor.session.post(
        visitor.address("box", "/talk"), data=pieces(), stream=True, timeout=30
    ) as reply:
        heard.extend(reply.iter_content(None))
    assert b"".join(heard) == b"heard piece 0 heard piece 1 heard piece 2 "


def test_a_large_body_passes_in_both_directions_with_little_memory(
    user: User, visitor: Visitor
) -> None:
    piece, digest = b"upload! " * 8192, hashlib.sha256()
    visitor.get("box", "/download?2")
    before, most = memory(user), 0

    def body() -> Iterator[bytes]:
        nonlocal most
        for number in range(1600):
            digest.update(piece)
            yield piece
            if number % 100 == 0:
                most = max(most, memory(user))

    reply = visitor.session.post(visitor.address("box", "/upload"), data=body(), timeout=120)
    assert reply.json() == {"bytes": 1600 * len(piece), "sha256": digest.hexdigest()}
    assert most - before < ALLOWED_GROWTH, f"grew by {(most - before) // MIB} MiB"
    count = 0
    with visitor.get("box", "/download?100", stream=True) as download:
        for data in download.iter_content(MIB):
            count += len(data)
            if count % (10 * MIB) < MIB:
                most = max(most, memory(user))
    assert count == 100 * MIB
    assert most - before < ALLOWED_GROWTH, f"grew by {(most - before) // MIB} MiB"


def test_a_body_of_known_length_is_not_kept_either(user: User, visitor: Visitor) -> None:
    # More than may be kept of it while the program does not read.
    body = b"z" * (ALLOWED_GROWTH + 16 * MIB)
    before = memory(user)
    reply = visitor.session.post(visitor.address("box", "/upload"), data=body, timeout=120)
    assert reply.json()["bytes"] == len(body)
    assert memory(user) - before < ALLOWED_GROWTH


def test_a_slow_reader_holds_up_nobody_and_fills_no_memory(user: User, visitor: Visitor) -> None:
    before = memory(user)
    with visitor.get("box", "/download?60", stream=True) as slow:
        chunks = slow.iter_content(MIB)
        next(chunks)
        other = Visitor(user.trailer)
        for _ in range(20):
            assert other.get("box").ok
        assert memory(user) - before < ALLOWED_GROWTH
        assert 1 + sum(len(chunk) for chunk in chunks) // MIB == 60


def test_an_answer_before_the_end_of_the_request_is_passed_on(visitor: Visitor) -> None:
    reply = visitor.session.post(visitor.address("box", "/early"), data=b"x" * 1000, timeout=30)
    assert (reply.status_code, reply.text) == (413, "too much")
    assert visitor.get("box").ok


def test_an_answer_that_breaks_off_does_not_look_whole(visitor: Visitor) -> None:
    with pytest.raises(Exception, match=r"IncompleteRead|broken|reset|abort"):
        assert visitor.get("box", "/break").content


def test_what_identifies_somebody_stays_with_the_platform(visitor: Visitor) -> None:
    claims = {
        "X-Trailer-User": "root",
        "X_Trailer_User": "root",
        "X-Forwarded-For": "9.9.9.9",
        "Remote-User": "root",
        "Authorization": "Token trl_api_abc",
        "Cookie": "sessionid=s; csrftoken=c; trailer_url=t; theme=dark",
    }
    fields = visitor.get("box", "/headers", headers=claims).json()
    assert not [f for f in fields if "root" in f[1] or "9.9.9.9" in f[1] or "trl_" in f[1]]
    assert [value for name, value in fields if name == "cookie"] == ["theme=dark"]
    assert ["x-forwarded-proto", "http"] in fields


def test_what_an_app_says_reaches_its_own_name_only(visitor: Visitor) -> None:
    reply = visitor.get("box", "/fields")
    cookies = reply.raw.headers.getlist("set-cookie")
    assert cookies == ["own=1; Path=/", "named=1; Path=/"]
    assert reply.headers["x-own"] == "kept"
    for name in ("strict-transport-security", "clear-site-data"):
        assert name not in reply.headers


def told(visitor: Visitor, raw: str) -> str:
    """All that the server says to these bytes before it closes."""
    with socket.create_connection(("127.0.0.1", visitor.trailer.port), timeout=60) as wire:
        wire.sendall(raw.format(host=f"box.localhost:{visitor.trailer.port}").encode("latin-1"))
        return b"".join(iter(lambda: wire.recv(65536), b"")).decode("latin-1")


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("POST /headers", ["Content-Length: 4", "Transfer-Encoding: chunked"]),
        ("POST /headers", ["Content-Length: 0", "Content-Length: 9"]),
        ("GET http://box.localhost/headers", []),
        ("CONNECT /headers", []),
        ("GET /head\x01ers", []),
        ("GET /headers", ["Host: mine.localhost"]),
    ],
    ids=["two framings", "two lengths", "a whole address", "CONNECT", "a control", "two hosts"],
)
def test_an_ambiguous_request_never_reaches_the_app(
    visitor: Visitor, line: str, fields: list[str]
) -> None:
    own = ["Host: {host}", "Connection: close"]
    head = "\r\n".join([f"{line} HTTP/1.1", *own, *fields, "", ""])
    answer = told(visitor, f"{head}0\r\n\r\nGET /headers HTTP/1.1\r\nHost: {{host}}\r\n\r\n")
    assert answer.count("HTTP/1.1 ") == 1
    if visitor.trailer.has_front_door and answer.startswith("HTTP/1.1 200 "):
        # Caddy decided on one reading: the application sees that and no trace of another.
        seen = dict(json.loads(answer.partition("\r\n\r\n")[2]))
        assert not {"content-length", "transfer-encoding"} <= set(seen)
        assert seen["x-forwarded-host"].partition(":")[0] == "box.localhost"
    else:
        assert answer.startswith("HTTP/1.1 400 ")
        assert "x-forwarded-for" not in answer, "the application saw it"


def test_an_answer_with_two_lengths_is_not_passed_on(visitor: Visitor) -> None:
    reply = visitor.get("box", "/twice")
    assert (reply.status_code, "abcd" in reply.text) == (502, False)


# --- WebSockets ---


def test_a_websocket_carries_words_and_large_messages(visitor: Visitor) -> None:
    with socket_to(visitor, "box") as wire:
        wire.send("hello")
        assert wire.recv(timeout=10) == "echo hello"
        large = bytes(range(256)) * 4096 * 6
        wire.send(large)
        assert wire.recv(timeout=30) == large


def test_a_websocket_ends_with_its_container(user: User, visitor: Visitor) -> None:
    workspace = serving(user, "brief", {"subdomain": "brief"})
    eventually(lambda: visitor.get("brief").ok, 20, "the application does not answer")
    with socket_to(visitor, "brief") as wire:
        user.post(f"/workspaces/{workspace['id']}/stop/")
        with pytest.raises(ConnectionClosed):
            wire.recv(timeout=20)
    user.wait_for(workspace, "stopped")
    reply = visitor.navigate("brief")
    assert reply.status_code == 503
    assert "This workspace is stopped" in reply.text
    assert visitor.get("brief").json()["message"].startswith("brief does not run.")


# --- nobody there ---


def test_what_cannot_be_reached_says_why(visitor: Visitor) -> None:
    unknown = visitor.navigate("nobody")
    assert unknown.status_code == 404
    assert "No workspace has the address nobody.localhost" in unknown.text
    assert visitor.get("nobody").json()["code"] == "not_found"
    shut = visitor.navigate("shut")
    assert shut.status_code == 503
    assert "nothing in it listens on port 9 yet" in shut.text
    assert shut.headers["refresh"]


# --- who may ---


def test_signing_in_leads_back_to_the_url(user: User, visitor: Visitor) -> None:
    page = visitor.navigate("mine", "/?a=1&b=2")
    assert page.url.startswith(f"{user.trailer.url}/login/")
    back = visitor.submit(page.url, "admin", "correct horse battery staple")
    assert back.url == visitor.address("mine", "/?a=1&b=2")
    assert "hello from the app" in back.text
    fields = visitor.get("mine", "/headers").json()
    assert ["x-trailer-user", "admin"] in fields
    assert not [f for f in fields if f[0] == "cookie"]
    elsewhere = {"Origin": visitor.address("box").rstrip("/")}
    foreign = visitor.session.post(
        visitor.address("mine", "/upload"), data=b"x", headers=elsewhere, timeout=30
    )
    assert foreign.status_code == 403, "another app's page may not act with this visitor's cookie"


def test_a_stranger_gets_nowhere_and_a_grant_counts_at_once(user: User) -> None:
    token = made_user(user, "stranger")
    person = user.trailer.api("GET", "/users/?search=stranger").json()["results"][0]
    grants = f"/workspaces/{user.box['id']}/grants/"  # type: ignore[attr-defined]
    visitor = Visitor(user.trailer)
    visitor.sign_in("stranger", "a long pass phrase 9")
    assert visitor.navigate("ours").status_code == 404
    assert visitor.get("ours").status_code == 401
    with pytest.raises(InvalidStatus):
        socket_to(visitor, "ours").__enter__()

    role = [{"user": person["id"], "role": "viewer"}]
    assert user.trailer.api("PUT", grants, json=role).ok
    assert "hello from the app" in visitor.navigate("ours").text
    assert visitor.navigate("mine").status_code == 404, "a viewer is not the owner"
    cookie = visitor.session.cookies.get("trailer_url", domain="ours.localhost")
    headers = {"Cookie": f"trailer_url={cookie}"}
    stolen = visitor.get("mine", headers=headers)
    assert stolen.status_code == 401, "a proof for one name opens no other"
    with (
        socket_to(visitor, "ours", additional_headers=headers) as wire,
        visitor.get("ours", "/download?500", headers=headers, stream=True) as download,
    ):
        chunks = download.iter_content(MIB)
        next(chunks)
        wire.send("hello")
        assert wire.recv(timeout=10) == "echo hello"
        assert user.trailer.api("PUT", grants, json=[]).ok
        assert visitor.get("ours").status_code == 401
        with pytest.raises(ConnectionClosed):
            wire.recv(timeout=20)
        with pytest.raises(requests.RequestException, match=r"IncompleteRead|broken|reset|abort"):
            list(chunks)
    assert json.loads(visitor.get("ours").text)["code"] == "not_signed_in"
    assert token
