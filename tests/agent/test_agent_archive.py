"""The agent's image from the server: what is loaded is what the server named, or nothing."""

from __future__ import annotations

import hashlib
from typing import IO, TYPE_CHECKING

import pytest

from agent.errors import EngineUnavailable, ServerUnavailable, StepFailed
from agent.overseer.archive import load_from_server
from agent.overseer.source import Source, archive_in, source_of
from agent.protocol.session import AgentImage, AgentImages
from agent.runtime.docker_agent import DockerAgents
from agent.server.http import HttpServer
from tests.agent.agents_model import Engine
from tests.agent.fake_server import TOKEN, FakeServer
from tests.ground.saved_image import saved_image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGE = "trailer.invalid/agent:2"
BODY = saved_image([IMAGE], layer=bytes(range(256)) * 4096)
DIGEST = hashlib.sha256(BODY).hexdigest()
AMD = AgentImage(image=IMAGE, architecture="amd64", digest=DIGEST, size=len(BODY))


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("trailer/agent:latest", Source.SERVER),
        ("agent", Source.SERVER),
        ("trailer/agent@sha256:" + "a" * 64, Source.SERVER),
        (IMAGE, Source.SERVER),
        ("docker.io", Source.SERVER),
        ("no image at all", Source.SERVER),
        ("docker.io/trailer/agent", Source.REGISTRY),
        ("index.docker.io/trailer/agent", Source.REGISTRY),
        ("registry.example.org/agent:2", Source.REGISTRY),
        ("localhost/agent", Source.REGISTRY),
        ("host:5000/agent@sha256:" + "a" * 64, Source.REGISTRY),
        ("sha256:" + "a" * 64, Source.ENGINE),
        ("a" * 64, Source.ENGINE),
    ],
)
def test_only_a_name_with_a_registrys_host_is_pulled(image: str, source: Source) -> None:
    assert source_of(image) is source


@pytest.mark.parametrize("image", ["trailer/agent:latest", IMAGE, "a" * 64])
def test_the_engine_is_never_told_to_pull_another_name(image: str) -> None:
    with pytest.raises(StepFailed, match="names no registry"):
        DockerAgents({"DOCKER_HOST": "tcp://127.0.0.1:9"}).pull(image, None)


def test_the_archive_is_that_of_the_name_and_the_machine() -> None:
    arm = AgentImage(image=IMAGE, architecture="arm64", digest="b" * 64)
    old = AgentImage(image="trailer.invalid/agent:1", architecture="amd64", digest="c" * 64)
    offered = AgentImages(images=(arm, old, AMD))
    assert archive_in(offered, IMAGE, "amd64") is AMD
    assert archive_in(offered, IMAGE, "s390x") is None
    assert archive_in(offered, "trailer/agent:2", "amd64") is None


class Handing:
    """A server that hands out these bytes; `breaks` downloads end early, each a little later."""

    def __init__(
        self, body: bytes = BODY, *, images: tuple[AgentImage, ...] = (AMD,), breaks: int = 0
    ) -> None:
        self.body, self.images, self.breaks = body, images, breaks
        self.starts: list[int] = []
        self.takes_ranges = True

    def agent_images(self) -> AgentImages:
        return AgentImages(images=self.images)

    def agent_archive(self, digest: str, *, start: int) -> tuple[int, Iterator[bytes]]:
        assert digest == self.images[0].digest
        self.starts.append(start)
        begin = start if self.takes_ranges else 0
        return begin, self._pieces(begin)

    def _pieces(self, begin: int) -> Iterator[bytes]:
        if self.breaks:
            self.breaks -= 1
            yield self.body[begin : begin + 1000]
            raise ServerUnavailable("The download broke off: Broken.")
        yield self.body[begin:]


def load(server: Handing, engine: Engine, folder: Path) -> str:
    found = load_from_server(server, engine, image=IMAGE, state_dir=folder)
    assert list(folder.iterdir()) == [], "it leaves files behind"
    return found


def test_an_archive_with_the_digest_that_the_server_names_is_loaded(tmp_path: Path) -> None:
    engine = Engine()
    assert load(Handing(), engine, tmp_path) == ""
    assert engine.loaded == [BODY]


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_a_download_that_breaks_off_goes_on(tmp_path: Path, takes_ranges: bool) -> None:
    engine, server = Engine(), Handing(breaks=3)
    server.takes_ranges = takes_ranges
    assert load(server, engine, tmp_path) == ""
    assert engine.loaded == [BODY]
    assert server.starts == ([0, 1000, 2000, 3000] if takes_ranges else [0, 1000, 1000, 1000])


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Handing(BODY[:-1] + b"?"), "another digest than it names. It was not loaded."),
        (Handing(BODY[:-1]), "another digest"),
        (Handing(BODY + b"more"), "longer than it says"),
        (Handing(breaks=9), "The download broke off"),
        (Handing(images=()), f"no archive of {IMAGE} for amd64"),
    ],
)
def test_anything_else_is_not_loaded_and_the_reason_is_a_sentence(
    tmp_path: Path, server: Handing, said: str
) -> None:
    engine = Engine()
    assert said in load(server, engine, tmp_path)
    assert engine.loaded == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (saved_image([IMAGE, "python:3.12-slim"]), "names python:3.12-slim, trailer.invalid"),
        (saved_image(["python:3.12-slim"]), "names python:3.12-slim. It was not loaded"),
        (saved_image([]), "names nothing"),
        (saved_image([IMAGE], index=["python:3.12-slim"]), "names python:3.12-slim, trailer"),
        (saved_image([IMAGE], index=[IMAGE]), ""),
        (saved_image([IMAGE], packed=True), ""),
        (b"no archive at all", "no archive, or it was cut off"),
        (BODY[:2000], "cut off"),
    ],
)
def test_an_archive_that_names_anything_else_is_not_loaded(
    tmp_path: Path, body: bytes, said: str
) -> None:
    """With the digest that the server names: a server that was taken over."""
    digest = hashlib.sha256(body).hexdigest()
    named = AgentImage(image=IMAGE, architecture="amd64", digest=digest, size=len(body))
    engine = Engine()
    found = load(Handing(body, images=(named,)), engine, tmp_path)
    assert said in found
    assert (found == "", engine.loaded) == (not said, [] if said else [body])


def test_what_the_engine_has_already_is_not_fetched_again(tmp_path: Path) -> None:
    named = AgentImage(
        image=IMAGE, architecture="amd64", digest=DIGEST, size=len(BODY), config="c" * 64
    )
    engine, server = Engine(), Handing(images=(named,))
    engine.images.add(IMAGE)
    engine.ids[IMAGE] = f"sha256:{'c' * 64}"
    assert load(server, engine, tmp_path) == ""
    assert (server.starts, engine.loaded) == ([], [])
    engine.ids[IMAGE] = f"sha256:{'d' * 64}"
    assert load(server, engine, tmp_path) == ""
    assert engine.loaded == [BODY]


def test_a_folder_that_takes_no_file_is_a_sentence(tmp_path: Path) -> None:
    said = load_from_server(Handing(), Engine(), image=IMAGE, state_dir=tmp_path / "gone")
    assert said == f"The archive of {IMAGE} could not be stored: No such file or directory."


def test_an_engine_that_does_not_take_the_archive_ends_the_try(tmp_path: Path) -> None:
    class Broken(Engine):
        def load(self, archive: IO[bytes]) -> None:
            raise EngineUnavailable("The container engine did not answer in time.")

    with pytest.raises(EngineUnavailable):
        load_from_server(Handing(), Broken(), image=IMAGE, state_dir=tmp_path)


def test_a_server_without_the_route_hands_out_nothing(fake_server: FakeServer) -> None:
    client = HttpServer(fake_server.url, token=TOKEN)
    assert client.agent_images() == AgentImages()


def test_archives_are_streamed_with_the_agents_token(fake_server: FakeServer) -> None:
    fake_server.answers[f"/images/{DIGEST}"] = (200, BODY)
    client = HttpServer(fake_server.url, token=TOKEN)
    start, pieces = client.agent_archive(DIGEST, start=0)
    assert (start, b"".join(pieces)) == (0, BODY)
    # A server that sends all although a part was asked for.
    start, pieces = client.agent_archive(DIGEST, start=1000)
    assert (start, b"".join(pieces)) == (0, BODY)
    fake_server.answers[f"/images/{DIGEST}"] = (206, BODY[1000:])
    start, pieces = client.agent_archive(DIGEST, start=1000)
    assert (start, b"".join(pieces)) == (1000, BODY[1000:])
    fake_server.answers[f"/images/{DIGEST}"] = (503, b"")
    with pytest.raises(ServerUnavailable):
        client.agent_archive(DIGEST, start=0)
