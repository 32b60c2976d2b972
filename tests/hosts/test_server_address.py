"""The address in the enrolment line: whether an agent on another machine would get through."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from hosts.server_address import address_warning, read_server_url
from tests.factories import api_client
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hosts.models import Host
    from trailer.accounts.models import User

ALLOWED = ["localhost", "127.0.0.1", "trailer.example.org", "10.0.0.5", "8.8.8.8", "[2001:db8::1]"]


def warning(url: str, bind: str = "0.0.0.0:8000") -> str:
    return address_warning(url, bind=bind, allowed_hosts=ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:8000", "http://localhost:8000", "http://127.9.9.9", "http://0.0.0.0"),
        *("http://[::1]:8000", "https://a.localhost", "http://[::ffff:127.0.0.1]", "http://[::]"),
    ],
)
def test_an_address_of_the_machine_itself_is_named_as_such(url: str) -> None:
    assert "leads an agent on another machine to that machine itself" in warning(url)


@pytest.mark.parametrize("bind", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_a_server_that_listens_here_alone_says_what_to_set(bind: str) -> None:
    said = warning("http://127.0.0.1:8000", bind)
    assert f"listens at {bind}" in said
    assert "TRAILER_BIND" in said
    assert "TRAILER_PUBLIC_URL" in said
    assert "TRAILER_BIND" not in warning("http://127.0.0.1:8000")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://trailer.example.org",
            "http://trailer.example.org:8000",
            "http://10.0.0.5:8000",
        ),
        *("https://8.8.8.8", "https://[2001:db8::1]"),
    ],
)
def test_nothing_is_said_of_an_address_that_may_work(url: str) -> None:
    assert warning(url) == ""


def test_a_name_that_this_server_does_not_go_by_is_named() -> None:
    assert "TRAILER_ALLOWED_HOSTS" in warning("https://other.example.org")
    assert "no request for 10.0.0.6" in warning("http://10.0.0.6:8000")


def test_no_token_goes_over_the_internet_without_encryption() -> None:
    assert "over https only" in warning("http://8.8.8.8")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Trailer.Example.org/", "https://trailer.example.org"),
        (" http://10.0.0.5:8000 ", "http://10.0.0.5:8000"),
        ("http://[2001:DB8::1]:80", "http://[2001:db8::1]:80"),
    ],
)
def test_an_address_is_taken_in_its_normal_form(text: str, url: str) -> None:
    assert read_server_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        *(
            "trailer.example.org",
            "ftp://a",
            "https://",
            "https://a/path",
            "https://a?b",
            "https://a#b",
        ),
        *("https://u:p@a", "https://a:0", "https://a:99999", "https://a b", "http://127.1"),
        *("http://2130706433", "https://a\n.org", "https://$(id)", f"https://{'a' * 300}.org"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(Invalid):
        read_server_url(text)


@contextmanager
def answering(status: int) -> Iterator[Any]:
    """A server on loopback that stands for one at an outside address."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://machine.test:{server.server_address[1]}", asked
        server.shutdown()


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """`machine.test` leads here, and this server goes by it."""
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        return real("127.0.0.1" if host == "machine.test" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    settings.ALLOWED_HOSTS = ["machine.test", "testserver"]


def enrolment(admin: User, host: Host, status: int = 201, **body: Any) -> Any:
    answer = api_client(admin).post(f"/api/v1/hosts/{host.pk}/enrolment/", body, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_the_default_address_is_the_public_one_and_its_fault_is_said(
    host: Host, admin: User, settings: Any
) -> None:
    settings.TRAILER_PUBLIC_URL = "http://127.0.0.1:8000"
    body = enrolment(admin, host)
    assert body["server_url"] == "http://127.0.0.1:8000"
    assert "to that machine itself" in body["server_warning"]
    assert body["server_answers"] is None


def test_the_line_takes_the_address_that_is_given_and_this_server_is_asked_there(
    host: Host, admin: User, named: None
) -> None:
    with answering(200) as (url, asked):
        body = enrolment(admin, host, server_url=f"{url}/")
    assert (body["server_url"], body["server_warning"], body["server_answers"]) == (url, "", True)
    assert f"TRAILER_SERVER_URL={url} " in body["command"]
    assert asked == [("/api/agent/v1/images", f"Bearer {body['token']}")]


@pytest.mark.parametrize("status", [401, 404, 302, 500])
def test_another_server_at_that_address_is_told_from_this_one(
    status: int, host: Host, admin: User, named: None
) -> None:
    with answering(status) as (url, asked):
        body = enrolment(admin, host, server_url=url)
    assert f"{url} is not this server: it answers {status}" in body["server_warning"]
    assert (body["server_answers"], len(asked)) == (False, 1)


def test_an_address_at_which_nothing_answers_is_said(host: Host, admin: User, named: None) -> None:
    body = enrolment(admin, host, server_url="http://machine.test:1")
    assert "Nothing answers at http://machine.test:1" in body["server_warning"]
    assert body["server_answers"] is False
    assert "TRAILER_SERVER_URL=http://machine.test:1" in body["command"]


def test_what_is_no_address_makes_no_line(host: Host, admin: User) -> None:
    body = enrolment(admin, host, 400, server_url="http://a/b")
    assert "server_url" in str(body)
    assert not host.enrolments.exists()
