"""The HTTP client that connects to judged addresses only, against real listeners."""

from __future__ import annotations

import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from agent import clock
from agent.errors import AddressRefused, FetchCancelled, FetchError
from agent.fetch.cancellation import Cancellation
from agent.fetch.client import HttpFetcher
from agent.fetch.port import Limits, Request, body_of
from agent.fetch.url import parse_url
from tests.agent.http_scene import (
    OTHER_PUBLIC,
    PUBLIC,
    Handler,
    Listener,
    World,
    listening,
    redirects,
    says,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture
def trap() -> Iterator[Listener]:
    """Listens on loopback only, and shall never be reached."""
    with listening(says(b"secret")) as found:
        yield found


def test_a_name_is_resolved_once_and_stays_the_host_that_is_asked() -> None:
    with listening(says()) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        with world.fetcher().open(Request(url="http://site.test/a?b=c")) as answer:
            assert (answer.status, answer.url) == (200, "http://site.test/a?b=c")
            assert body_of(answer) == b"hello"
    assert world.asked == ["site.test"]
    assert world.connected == [(PUBLIC, 80)]
    assert server.heads[0].startswith("GET /a?b=c HTTP/1.1\r\nHost: site.test\r\n")


_HOSTILE_HOSTS = (
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1"),
    *("017700000001", "127.0.0.1.", "127.000.000.001", "0", "0.0.0.0", "localhost", "LOCALHOST."),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]"),
    *("[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "[fd00::1]", "[::127.0.0.1]"),
    *("169.254.169.254", "168.63.129.16", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *("[fd00:ec2::254]", "224.0.0.1", "255.255.255.255", "a@127.0.0.1", "site.test@127.0.0.1"),
    *("127.0.0.1%2f", "127。0。0。1", "①②⑦.⓪.⓪.①", "site.test\\@127.0.0.1", "127.0.0.1#site.test"),
    *("private.test", "mixed.test", "mapped.test", "six.test", "zone.test", "own.test", ""),
)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", _HOSTILE_HOSTS)
def test_nothing_is_sent_to_an_address_inside(host: str, scheme: str, trap: Listener) -> None:
    names: dict[str, Sequence[str]] = {
        "localhost": ["::1", "127.0.0.1"],
        "private.test": ["127.0.0.1"],
        "mixed.test": [PUBLIC, "127.0.0.1"],
        "mapped.test": ["::ffff:127.0.0.1"],
        "six.test": ["::1"],
        "zone.test": ["fe80::1%lo"],
        "own.test": [PUBLIC],
    }
    world = World(names, {(PUBLIC, trap.port): trap})
    with pytest.raises(FetchError):
        world.fetcher(own=[PUBLIC]).open(Request(url=f"{scheme}://{host}:{trap.port}/"))
    assert world.connected == []
    assert trap.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://[::1]:{port}/",
        "http://2130706433:{port}/",
        "http://inside.test:{port}/",
        "http://again.test/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/",
        "http://site.test\t@127.0.0.1:{port}/",
        "http:\\\\127.0.0.1:{port}\\",
        "https://user@site.test/",
    ],
)
def test_each_redirect_is_judged_again(location: str, trap: Listener) -> None:
    with listening(redirects(location.format(port=trap.port))) as server:
        world = World(
            {"site.test": [PUBLIC], "inside.test": ["127.0.0.1"], "again.test": ["10.1.2.3"]},
            {(PUBLIC, 80): server},
        )
        with pytest.raises(FetchError):
            world.fetcher().open(Request(url="http://site.test/"))
    assert trap.connections == 0
    assert world.connected == [(PUBLIC, 80)]


def test_a_name_that_moves_between_two_questions_reaches_only_what_was_judged(
    trap: Listener,
) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
    with listening(redirects(f"http://moving.test:{trap.port}/")) as server:
        world = World({}, {(PUBLIC, trap.port): server})
        fetcher = HttpFetcher(
            resolve=lambda host, port: next(answers), connect=world.connect, own=list
        )
        with pytest.raises(AddressRefused):
            fetcher.open(Request(url=f"http://moving.test:{trap.port}/"))
        assert server.connections == 1
    assert world.connected == [(PUBLIC, trap.port)]
    assert trap.connections == 0


def test_an_endless_redirect_ends() -> None:
    with listening(redirects("/again")) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        with pytest.raises(FetchError, match="redirects more than 3"):
            world.fetcher().open(Request(url="http://site.test/", limits=Limits(redirects=3)))
    assert len(server.heads) == 4


def test_a_credential_stays_with_its_scheme_host_and_port() -> None:
    with listening(says()) as last, listening(redirects("http://site.test/2")) as other:
        hops: list[str] = []

        def first(held: socket.socket, head: bytes) -> None:
            hops.append(head.decode())
            target = "/1" if len(hops) == 1 else "http://other.test/"
            (says() if len(hops) > 2 else redirects(target))(held, head)

        with listening(first) as site:
            world = World(
                {"site.test": [PUBLIC], "other.test": [OTHER_PUBLIC]},
                {(PUBLIC, 80): site, (OTHER_PUBLIC, 80): other, (PUBLIC, 81): last},
            )
            fetcher = world.fetcher()
            request = Request(url="http://site.test/", authorization="Bearer secret")
            with fetcher.open(request) as answer:
                assert answer.status == 200
    assert ["secret" in head for head in hops] == [True, True, False]
    assert "secret" not in other.heads[0]
    assert "secret" not in repr(request)


def test_the_environments_proxies_and_netrc_are_not_used(
    trap: Listener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine site.test login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with listening(says()) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        with world.fetcher().open(Request(url="http://site.test/")) as answer:
            assert body_of(answer) == b"hello"
    assert trap.connections == 0
    assert "Authorization" not in server.heads[0]


def test_what_is_listed_is_reached() -> None:
    with listening(says()) as server:
        request = Request(url=f"http://127.0.0.1:{server.port}/", allow=("127.0.0.0/8",))
        with HttpFetcher().open(request) as answer:
            assert body_of(answer) == b"hello"


def test_a_second_address_of_the_name_is_tried() -> None:
    with listening(says()) as server:
        closed = Listener(says())
        closed.close()
        world = World(
            {"site.test": [OTHER_PUBLIC, PUBLIC]},
            {(OTHER_PUBLIC, 80): closed, (PUBLIC, 80): server},
        )
        with world.fetcher().open(Request(url="http://site.test/")) as answer:
            assert body_of(answer) == b"hello"
    assert world.connected == [(OTHER_PUBLIC, 80), (PUBLIC, 80)]


def test_a_body_over_the_limit_is_not_read_to_its_end() -> None:
    with listening(says(b"x" * 5000)) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        request = Request(url="http://site.test/", limits=Limits(size=1000))
        with (
            world.fetcher().open(request) as answer,
            pytest.raises(FetchError, match="more than 1000"),
        ):
            body_of(answer)


def test_a_body_that_ends_early_is_no_body() -> None:
    def handle(held: socket.socket, _: bytes) -> None:
        held.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    with listening(handle) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        with (
            world.fetcher().open(Request(url="http://site.test/")) as answer,
            pytest.raises(FetchError, match="in the middle"),
        ):
            body_of(answer)


def drips(what: bytes) -> Handler:
    """One byte at a time, for ever: no wait for a single byte is ever long."""

    def handle(held: socket.socket, _: bytes) -> None:
        pause = threading.Event()
        held.sendall(what)
        while not pause.wait(0.05):
            held.sendall(b"x")

    return handle


@pytest.mark.parametrize("what", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_drips_is_left_in_time(what: bytes) -> None:
    with listening(drips(what)) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        request = Request(url="http://site.test/", limits=Limits(total=0.5, idle=5))
        began = clock.monotonic()
        with pytest.raises(FetchError, match="longer than"):
            body_of(world.fetcher().open(request))
        assert clock.monotonic() - began < 3


def test_a_silent_server_is_left_in_time() -> None:
    def waits(held: socket.socket, _: bytes) -> None:
        held.recv(1)

    with listening(waits) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        request = Request(url="http://site.test/", limits=Limits(total=60, idle=0.3))
        with pytest.raises(FetchError):
            world.fetcher().open(request)


@pytest.mark.parametrize("stage", ["name", "headers", "body"])
def test_cancelling_wakes_whoever_waits(stage: str) -> None:
    waiting = threading.Event()
    over = threading.Event()

    def hangs(held: socket.socket, _: bytes) -> None:
        if stage == "body":
            held.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        waiting.set()
        over.wait(20)

    def slow(host: str, port: int) -> Sequence[str]:
        waiting.set()
        over.wait(20)
        return [PUBLIC]

    with listening(hangs) as server:
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})
        fetcher = HttpFetcher(
            resolve=slow if stage == "name" else world.resolve, connect=world.connect, own=list
        )
        cancellation = Cancellation()

        def cancel() -> None:
            waiting.wait(10)
            cancellation.cancel()

        threading.Thread(target=cancel, daemon=True).start()
        began = clock.monotonic()
        with pytest.raises(FetchCancelled):
            body_of(fetcher.open(Request(url="http://site.test/"), cancellation))
        assert clock.monotonic() - began < 8
        over.set()


def test_tls_asks_for_the_name_and_believes_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=site.test", "-addext", "subjectAltName=DNS:site.test"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: asked.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with listening(says()) as server:
        server.context = context
        world = World({"site.test": [PUBLIC], "other.test": [PUBLIC]}, {(PUBLIC, 443): server})
        with world.fetcher().open(Request(url="https://site.test/")) as answer:
            assert body_of(answer) == b"hello"
        with pytest.raises(FetchError, match="no secure connection"):
            world.fetcher().open(Request(url="https://other.test/"))
        unverified = Request(url="https://other.test/", verify_tls=False)
        with world.fetcher().open(unverified) as answer:
            assert body_of(answer) == b"hello"
        with pytest.raises(ValueError, match="verified"):
            world.fetcher().open(
                Request(url="https://site.test/", verify_tls=False, authorization="Bearer x")
            )
    assert asked[:2] == ["site.test", "other.test"]


def test_no_sockets_are_left_open() -> None:
    with listening(says()) as server:
        opened: list[socket.socket] = []
        world = World({"site.test": [PUBLIC]}, {(PUBLIC, 80): server})

        def connect(held: socket.socket, address: tuple[str, int]) -> None:
            opened.append(held)
            world.connect(held, address)

        fetcher = HttpFetcher(resolve=world.resolve, connect=connect, own=list)
        with fetcher.open(Request(url="http://site.test/")):
            pass
        body_of(fetcher.open(Request(url="http://site.test/")))
    assert [held.fileno() for held in opened] == [-1, -1]


def test_only_the_urls_own_port_is_left_out_of_the_host_header() -> None:
    assert parse_url("https://Site.Test:443/").netloc == "site.test"
    assert parse_url("https://site.test:80/").netloc == "site.test:80"
    assert parse_url("http://[2606:4700::1]:8080/x").netloc == "[2606:4700::1]:8080"
