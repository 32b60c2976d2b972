"""Requests that two readers could take for different ones: refused, or the same for both."""

from __future__ import annotations

from typing import Final

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workspaces.urls.edge import HOST, Edge, Seen, said_to_app, understood_by_app
from workspaces.urls.tunnel import Tunnel, TunnelBroken, Unsendable

HIDDEN: Final = "GET /hidden HTTP/1.1\r\nHost: box.localhost\r\n\r\n"


def post(*lines: str, body: str = "") -> bytes:
    return "\r\n".join(("POST /p HTTP/1.1", f"Host: {HOST}", *lines, "", body)).encode("latin-1")


def get(*lines: str, target: str = "/", rest: str = "", host: str = f"Host: {HOST}") -> bytes:
    head = (f"GET {target} HTTP/1.1", *([host] if host else []), *lines, "", rest)
    return "\r\n".join(head).encode("latin-1")


CHUNKED: Final = "Transfer-Encoding: chunked"
BAD_FRAMING: Final = {
    "length and chunks": post("Content-Length: 5", CHUNKED, body=f"0\r\n\r\n{HIDDEN}"),
    "chunks and length": post(CHUNKED, "Content-Length: 50", body=f"0\r\n\r\n{HIDDEN}"),
    "two lengths": post("Content-Length: 0", "Content-Length: 44", body=HIDDEN),
    "the same length twice": post("Content-Length: 2", "Content-Length: 2", body="ab"),
    "a list of lengths": post("Content-Length: 0, 44", body=HIDDEN),
    "a signed length": post("Content-Length: +2", body="ab"),
    "a negative length": post("Content-Length: -1"),
    "a length in hexadecimal": post("Content-Length: 0x2c", body=HIDDEN),
    "a length with a space in it": post("Content-Length: 4 4", body=HIDDEN),
    "a length of other digits": post("Content-Length: \xb2", body=HIDDEN),
    "an empty length": post("Content-Length: ", body=HIDDEN),
    "a length with a line break": post("Content-Length: 0\r\n 44", body=HIDDEN),
    "a broken name of length": post("Content-Length : 44", body=HIDDEN),
    "chunked twice": post(CHUNKED, CHUNKED, body=f"0\r\n\r\n{HIDDEN}"),
    "chunked and more": post("Transfer-Encoding: chunked, identity", body="0\r\n\r\n"),
    "gzip, chunked": post("Transfer-Encoding: gzip, chunked", body="0\r\n\r\n"),
    "xchunked": post("Transfer-Encoding: xchunked", body=f"0\r\n\r\n{HIDDEN}"),
    "chunked in quotes": post('Transfer-Encoding: "chunked"', body="0\r\n\r\n"),
    "chunked behind a vertical tab": post("Transfer-Encoding: \x0bchunked", body="0\r\n\r\n"),
    "chunked behind a folded line": post("Transfer-Encoding:\r\n x\r\n chunked", body=HIDDEN),
    "a tab before the colon": post("Transfer-Encoding\t: chunked", body=f"0\r\n\r\n{HIDDEN}"),
    "a control character in the name": post("Transfer\x00-Encoding: chunked", body=HIDDEN),
    "an empty encoding": post("Transfer-Encoding:", body=HIDDEN),
    "a NUL in a value": get("X-A: a\x00b"),
    "a bare return in a value": get("X-A: a\rTransfer-Encoding: chunked"),
    "a bare line feed": get("X-A: a\nX-Trailer-User: root"),
    "a field without a colon": get("X-A"),
    "a field without a name": get(": x"),
    "a space in a name": get("X Trailer User: root"),
    "a request line with four words": get(target="/a HTTP/1.1\tx /b"),
    "an unknown version": b"GET / HTTP/1.9\r\nHost: box.localhost\r\n\r\n",
    "two hosts": get("Host: box.evil"),
    "a letter outside ASCII in the path": get(target="/\xe9"),
    "more fields than anybody has": get(*(f"X-{number}: 1" for number in range(600))),
    "fields larger than anybody's": get(*(f"X-{number}: {'y' * 900}" for number in range(40))),
}


@pytest.mark.parametrize("raw", BAD_FRAMING.values(), ids=BAD_FRAMING.keys())
def test_what_could_be_read_in_two_ways_is_refused(raw: bytes) -> None:
    edge = Edge()
    edge.receive(raw)
    assert edge.is_refused
    assert edge.whole() == []


BAD_CHUNKS: Final = {
    "a size that is no number": "zz\r\nab\r\n0\r\n\r\n",
    "a signed size": "-1\r\nab\r\n0\r\n\r\n",
    "a size with a prefix": "0x2\r\nab\r\n0\r\n\r\n",
    "a size with underscores": "1_0\r\nab\r\n0\r\n\r\n",
    "a longer chunk than its size": "2\r\nabcd\r\n0\r\n\r\n",
    "a line feed alone behind the size": "2\nab\r\n0\r\n\r\n",
    "a line feed in an extension": "2;a\nb\r\nab\r\n0\r\n\r\n",
    "an endless extension": f"2;{'x' * 20000}\r\nab\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS.keys())
def test_a_body_in_broken_pieces_never_ends(body: str) -> None:
    edge = Edge()
    edge.receive(post(CHUNKED, body=body + HIDDEN))
    assert edge.whole() == []
    assert len(edge.visits) <= 1, "the rest of it was taken for another request"


ODD: Final = {
    "a length with zeros before it": (post("Content-Length: 002", body="ab"), b"ab"),
    "an identity that says nothing": (
        post("Transfer-Encoding: identity", "Content-Length: 2", body="ab"),
        b"ab",
    ),
    "chunks in capitals": (post("Transfer-Encoding: CHUNKED", body="2\r\nab\r\n0\r\n\r\n"), b"ab"),
    "a chunk's extension": (post(CHUNKED, body='2;a="b"\r\nab\r\n0\r\n\r\n'), b"ab"),
    "fields behind the body": (
        post(CHUNKED, body="2\r\nab\r\n0\r\nX-Trailer-User: root\r\n\r\n"),
        b"ab",
    ),
    "a body that looks like a request": (
        post(f"Content-Length: {len(HIDDEN)}", body=HIDDEN),
        HIDDEN.encode(),
    ),
    "a length named an option": (
        post("Connection: content-length", "Content-Length: 2", body="ab"),
        b"ab",
    ),
    "chunks named an option": (
        post("Connection: transfer-encoding", CHUNKED, body="2\r\nab\r\n0\r\n\r\n"),
        b"ab",
    ),
    "an underscore that others read as a hyphen": (
        post("Transfer_Encoding: chunked", "Content-Length: 2", body="ab"),
        b"ab",
    ),
    "a POST that wants another protocol": (
        post("Connection: upgrade", "Upgrade: websocket", "Content-Length: 2", body="ab"),
        b"ab",
    ),
}


@pytest.mark.parametrize(("raw", "body"), ODD.values(), ids=ODD.keys())
def test_an_odd_request_is_the_same_for_everybody(raw: bytes, body: bytes) -> None:
    edge = Edge()
    edge.receive(raw)
    ((scope, heard),) = edge.whole()
    assert heard == body
    assert understood_by_app(said_to_app(scope, heard)) == [Seen("/p", body)]


def test_two_requests_on_one_connection_are_two_visits() -> None:
    edge = Edge()
    edge.receive(post("Content-Length: 2", body="ab") + HIDDEN.encode())
    assert [scope["path"] for scope, _ in edge.whole()] == ["/p", "/hidden"]


@pytest.mark.parametrize("wanted", ["h2c", "websocket, h2c", "websocket/13", "TLS/1.0"])
def test_no_other_protocol_is_asked_for(wanted: str) -> None:
    edge = Edge()
    edge.receive(get("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {wanted}"))
    ((scope, heard),) = edge.whole()
    assert b"pgrade" not in said_to_app(scope, heard)
    assert edge.switched == []


def test_what_follows_a_switch_is_no_request() -> None:
    edge = Edge()
    edge.receive(get("Connection: Upgrade", "Upgrade: websocket", rest=HIDDEN))
    assert [scope["path"] for scope in edge.switched] == ["/"]
    assert edge.visits == []


@pytest.mark.parametrize("target", ["http://box.evil/x", "*", "box.evil:80", "x", "?a"])
def test_only_paths_are_asked_for(target: str) -> None:
    edge = Edge()
    edge.receive(get(target=target))
    assert all(not scope["raw_path"].startswith(b"/") for scope, _ in edge.whole())


@pytest.mark.parametrize("target", ["/a\x01", "/a\x7fb", "/\t", '/"<>'])
def test_a_path_is_passed_on_as_it_is_or_not_at_all(target: str) -> None:
    edge = Edge()
    edge.receive(get(target=target))
    for scope, heard in edge.whole():
        try:
            seen = understood_by_app(said_to_app(scope, heard))
        except Unsendable:
            continue
        assert seen == [Seen(target, b"")]


@pytest.mark.parametrize("path", ["/../x", "//x//y", "/%2e%2e/x", "/a%2fb", "/a%00b", "/a;b?c?d"])
def test_a_path_reaches_the_app_byte_by_byte(path: str) -> None:
    """Who may pass is decided by the host's name alone: no spelling of a path changes it."""
    edge = Edge()
    edge.receive(get(target=path))
    ((scope, heard),) = edge.whole()
    assert understood_by_app(said_to_app(scope, heard)) == [Seen(path, b"")]


def test_a_length_that_no_number_holds_is_not_passed_on() -> None:
    edge = Edge()
    edge.receive(post(f"Content-Length: {'9' * 40}"))
    ((scope, _),) = edge.visits
    with pytest.raises(Unsendable):
        said_to_app(scope, b"")


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["Content-Length", "Transfer-Encoding", "Connection", "Expect"])),
    st.lists(st.sampled_from(["0", "2", "chunked", "close", "identity", "\tchunked", "5,5", ""])),
    st.sampled_from(["", "ab", "0\r\n\r\n", "2\r\nab\r\n0\r\n\r\n", "a\r\n"]),
)
def test_any_mixture_is_refused_or_the_same_for_everybody(
    names: list[str], values: list[str], body: str
) -> None:
    edge = Edge()
    lines = [f"{name}: {value}" for name, value in zip(names, values, strict=False)]
    edge.receive(post(*lines, body=body + HIDDEN))
    for scope, heard in edge.whole():
        assert understood_by_app(said_to_app(scope, heard)) == [Seen(scope["path"], heard)]


# --- answers ---


def asked() -> Tunnel:
    tunnel = Tunnel(None)  # type: ignore[arg-type]
    tunnel._http.send(h11.Request(method="GET", target="/", headers=[("host", HOST)]))
    tunnel._http.send(h11.EndOfMessage())
    return tunnel


def answered(tunnel: Tunnel, raw: str) -> list[type]:
    """The kinds of what is passed on."""
    tunnel._http.receive_data(raw.encode("latin-1"))
    found: list[type] = []
    while h11.EndOfMessage not in found and (event := tunnel.next_event()) is not None:
        found.append(type(event))
    return found


SPLIT: Final = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n"
BAD_ANSWERS: Final = {
    "length and chunks": f"Content-Length: 2\r\n{CHUNKED}\r\n\r\n0\r\n\r\n{SPLIT}",
    "two lengths": f"Content-Length: 0\r\nContent-Length: 40\r\n\r\n{SPLIT}",
    "a list of lengths": f"Content-Length: 0, 40\r\n\r\n{SPLIT}",
    "gzip, chunked": f"Transfer-Encoding: gzip, chunked\r\n\r\n{SPLIT}",
    "chunked twice": f"{CHUNKED}\r\n{CHUNKED}\r\n\r\n{SPLIT}",
    "a size that is no number": f"{CHUNKED}\r\n\r\nzz\r\n{SPLIT}",
    "a control character in a name": "X\x01A: b\r\n\r\n",
    "a NUL in a value": "X-A: a\x00b\r\n\r\n",
    "a space before the colon": "Content-Length : 0\r\n\r\n",
}


@pytest.mark.parametrize("fields", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_an_answer_that_could_be_read_in_two_ways_is_not_passed_on(fields: str) -> None:
    with pytest.raises(TunnelBroken):
        answered(asked(), f"HTTP/1.1 200 OK\r\n{fields}")


def test_a_switch_that_nobody_asked_for_is_not_made() -> None:
    with pytest.raises(TunnelBroken):
        answered(asked(), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")


def test_what_an_app_sends_behind_its_answer_is_nobodys_answer() -> None:
    tunnel, proper = asked(), asked()
    head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
    whole = [h11.Response, h11.Data, h11.EndOfMessage]
    assert answered(proper, head) == whole
    assert proper.may_be_kept()
    assert answered(tunnel, head + SPLIT) == whole
    assert not tunnel.may_be_kept(), "the next visitor would get it"
