"""Without encryption a token goes to this machine and private networks, and nowhere else."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent.cli import main
from agent.errors import ConfigError, ServerUnavailable
from agent.server import plain_http
from agent.server.http import HttpServer
from agent.server.plain_http import check_server_address, is_private
from agent.server.socket import ServerSocket
from tests.agent.fake_server import TOKEN, FakeServer
from tests.agent.test_server_client import Nudger
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE = (
    *("127.0.0.1", "127.8.8.8", "10.77.1.2", "172.16.0.1", "172.31.255.9", "192.168.1.4"),
    *("169.254.7.7", "100.64.0.9", "100.127.1.1", "::1", "fe80::1", "fe80::1%eth0", "fd12::7"),
    "::ffff:10.0.0.1",
)
PUBLIC = (
    *("8.8.8.8", "172.32.0.1", "192.169.1.1", "100.63.0.1", "100.128.0.1", "11.0.0.1"),
    *("2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::a00:1"),
)


def lead(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name leads there."""

    def answer(host: str, *_: Any, **__: Any) -> list[Any]:
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, 0)) for text in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.fixture
def nudger() -> Iterator[Nudger]:
    nudger = Nudger()
    yield nudger
    nudger.server.shutdown()


def test_which_addresses_are_private() -> None:
    assert [address for address in PRIVATE if not is_private(address)] == []
    assert [address for address in PUBLIC if is_private(address)] == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000", "http://10.77.3.1:8000/", "http://[fd00::1]:80", "http://[::1]"],
)
def test_a_server_nearby_is_fine(url: str) -> None:
    check_server_address(url, allowed=False)


@pytest.mark.parametrize("url", ["http://8.8.8.8", "http://8.8.8.8:8000/x", "http://[2606::1]:80"])
def test_a_public_address_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(ConfigError, match=r"https.*TRAILER_AGENT_PLAIN_HTTP=1"):
        check_server_address(url, allowed=False)
    check_server_address(url, allowed=True)
    check_server_address(url.replace("http:", "https:"), allowed=False)


def test_all_addresses_of_a_name_must_be_private(monkeypatch: pytest.MonkeyPatch) -> None:
    lead(monkeypatch, "10.0.0.1", "192.168.0.1")
    check_server_address("http://trailer.lan", allowed=False)
    lead(monkeypatch, "10.0.0.1", "8.8.8.8")
    with pytest.raises(ConfigError, match=r"leads to 8\.8\.8\.8"):
        check_server_address("http://trailer.lan", allowed=False)


def test_a_name_that_leads_nowhere_yet_lets_the_agent_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lead(monkeypatch)
    check_server_address("http://trailer.lan", allowed=False)


def test_one_line_warns_of_a_network_and_none_of_this_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        check_server_address("http://127.0.0.1:8000", allowed=False)
        assert caplog.records == []
        check_server_address("http://10.77.3.1:8000", allowed=False)
        check_server_address("https://10.77.3.1", allowed=False)
    assert [record.getMessage() for record in caplog.records] == [
        "the token goes to http://10.77.3.1:8000 unencrypted: use https where others listen"
    ]


@pytest.mark.parametrize("command", ["run", "once"])
def test_the_agent_ends_with_the_sentence_before_it_says_anything(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRAILER_SERVER_URL", "http://8.8.8.8:9")
    monkeypatch.setenv("TRAILER_AGENT_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("TRAILER_ENROLMENT_TOKEN", "secret")
    assert main([command]) == 2
    written = capsys.readouterr().err
    assert "does not send its token unencrypted" in written
    assert "secret" not in written


def test_a_name_that_moves_to_the_internet_gets_no_token(
    fake_server: FakeServer, nudger: Nudger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is looked at before anything is sent: here this machine counts as public."""
    monkeypatch.setattr(plain_http, "is_private", lambda address: address != "127.0.0.1")
    with pytest.raises(ServerUnavailable, match=r"leads to 127\.0\.0\.1 now.*https"):
        HttpServer(fake_server.url, token=TOKEN).check()
    assert fake_server.book.requests == []
    assert HttpServer(fake_server.url, token=TOKEN, plain_http=True).check()
    stop = threading.Event()
    sockets = {
        allowed: ServerSocket(
            f"http://127.0.0.1:{nudger.port}",
            token=lambda: TOKEN,
            epoch=lambda: 1,
            on_nudge=stop.set,
            stop=stop,
            plain_http=allowed,
        )
        for allowed in (False, True)
    }
    refused = threading.Thread(target=sockets[False].run, daemon=True)
    refused.start()
    refused.join(0.7)
    assert (nudger.connections, stop.is_set()) == ([], False)
    allowed = threading.Thread(target=sockets[True].run, daemon=True)
    allowed.start()
    eventually(stop.is_set)
    for thread in (refused, allowed):
        thread.join(10)
        assert not thread.is_alive()
