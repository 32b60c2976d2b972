"""TRAILER_AGENT_IMAGE in the line: by its digest, and by a tag only with a sentence."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import caches

from hosts.agent_images.offer import agent_offer, update_image
from hosts.agent_images.pinned import Pinned, pinned_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIGEST = f"sha256:{'ab' * 32}"
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    caches["process"].clear()


@contextmanager
def registry(answer: Callable[[str, str], Answer]) -> Iterator[tuple[str, list[str]]]:
    """`answer` gets a path and the credential; its address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, body = answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, text)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  the interface's name

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def has_it(path: str, credential: str) -> Answer:
    return 200, {"Docker-Content-Digest": DIGEST}, b""


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("trailer/agent:2", "/v2/trailer/agent/manifests/2"),
        ("agent", "/v2/agent/manifests/latest"),
    ],
)
def test_a_tag_becomes_the_digest_that_its_registry_has(rest: str, asked: str) -> None:
    with registry(has_it) as (address, paths):
        found = pinned_image(f"{address}/{rest}")
        assert found == Pinned(f"{address}/{rest.partition(':')[0]}@{DIGEST}")
        assert pinned_image(f"{address}/{rest}") == found
    assert paths == [asked], "it is asked for each line of the same minute"


def test_a_public_registry_is_asked_with_the_token_that_it_gives_to_anybody() -> None:
    def with_token(path: str, credential: str) -> Answer:
        if path.startswith("/token"):
            assert "repository%3Atrailer%2Fagent%3Apull" in path
            return 200, {}, b'{"token": "anybody"}'
        if credential == "Bearer anybody":
            return has_it(path, credential)
        realm = f'Bearer realm="http://{address}/token",service="s"'
        return 401, {"WWW-Authenticate": realm}, b""

    with registry(with_token) as (address, _):
        assert pinned_image(f"{address}/trailer/agent:2").image.endswith(DIGEST)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {}, b""), "answered 404"),
        ((200, {}, b""), "answered 200"),
        ((200, {"Docker-Content-Digest": "sha256:short"}, b""), "answered 200"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "answered 302"),
        ((500, {"Docker-Content-Digest": DIGEST}, b""), "answered 500"),
        ((401, {"WWW-Authenticate": 'Basic realm="r"'}, b""), "wants a password"),
        (
            (401, {"WWW-Authenticate": 'Bearer realm="file:///etc/passwd"'}, b""),
            "wants a password",
        ),
        ((401, {}, b""), "wants a password"),
    ],
)
def test_a_digest_that_cannot_be_found_out_is_said(answer: Answer, said: str) -> None:
    with registry(lambda path, credential: answer) as (address, paths):
        image = f"{address}/trailer/agent:2"
        found = pinned_image(image)
    assert (found.image, found.is_local, len(paths)) == (image, False, 1)
    assert said in found.problem
    assert "root on the machine" in found.problem


def test_a_registry_that_is_away_is_said() -> None:
    found = pinned_image("127.0.0.1:1/agent:2")
    assert "could not be asked" in found.problem


def test_an_image_that_has_a_digest_is_taken_as_it_is() -> None:
    image = f"registry.invalid/agent@{DIGEST}"
    assert pinned_image(image) == Pinned(image)


@pytest.mark.parametrize("image", ["trailer/agent:latest", "agent", f"trailer/agent@{DIGEST}"])
def test_a_name_without_a_registry_is_run_only_where_it_is_already(
    image: str, settings: Any
) -> None:
    """Docker would ask Docker Hub, where the name is anybody's."""
    settings.TRAILER_AGENT_IMAGE = image
    offer = agent_offer()
    assert offer.line("token", "https://trailer.invalid").endswith(f"--pull=never {image}")
    assert f"docker.io/{image}" in offer.problem


@pytest.mark.parametrize("image", ["trailer.invalid/agent:latest", f"sha256:{'0' * 64}"])
def test_an_image_that_was_built_on_the_host_needs_no_digest(image: str, settings: Any) -> None:
    settings.TRAILER_AGENT_IMAGE = image
    offer = agent_offer()
    assert offer.problem == ""
    assert offer.line("token", "https://trailer.invalid").endswith(f"--pull=never {image}")


def test_a_setting_that_is_no_image_is_said(settings: Any) -> None:
    settings.TRAILER_AGENT_IMAGE = "My Agent"
    assert "no image's name" in agent_offer().problem


def test_an_update_suggests_the_setting_by_its_name(settings: Any) -> None:
    settings.TRAILER_AGENT_IMAGE = "registry.invalid/agent:2"
    assert update_image() == "registry.invalid/agent:2"
