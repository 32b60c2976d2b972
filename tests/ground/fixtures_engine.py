"""Fixtures of Docker engines, the proxy in front of them, and registries."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count

import docker
import pytest

from tests.ground.engine import PrivateEngine
from tests.ground.hostnet import sweep_leftovers
from tests.ground.images import ensure_images
from tests.ground.proxy import DockerApiProxy
from tests.ground.registry import LocalRegistry

EngineFactory = Callable[..., PrivateEngine]


@pytest.fixture(scope="session")
def swept_machine() -> None:
    """Clear what killed test runs left behind, once."""
    sweep_leftovers()


@pytest.fixture(scope="session")
def engine(swept_machine: None) -> Iterator[PrivateEngine]:
    """One engine for the whole run, with the test images."""
    private = PrivateEngine()
    try:
        private.create()
        with closing(private.client()) as client:
            ensure_images(client)
        yield private
    finally:
        private.destroy()


@pytest.fixture
def engine_factory(swept_machine: None) -> Iterator[EngineFactory]:
    """Make further engines, each a host of its own with the test images; gone after the test."""
    made: list[PrivateEngine] = []

    def make(
        *options: str, env: dict[str, str] | None = None, disk_bytes: int = 0
    ) -> PrivateEngine:
        private = PrivateEngine(options, env, disk_bytes=disk_bytes)
        made.append(private)
        private.create()
        with closing(private.client()) as client:
            ensure_images(client)
        return private

    yield make
    for private in made:
        private.destroy()


@pytest.fixture
def clean_engine(engine: PrivateEngine) -> Iterator[PrivateEngine]:
    """The run's engine without any container, network or volume, before the test and after."""
    engine.clean()
    yield engine
    engine.clean()


@pytest.fixture
def engine_client(clean_engine: PrivateEngine) -> Iterator[docker.DockerClient]:
    """A client of the clean engine."""
    with closing(clean_engine.client()) as client:
        yield client


@pytest.fixture(scope="session")
def proxy_number() -> Iterator[int]:
    """Numbers for the proxies' sockets."""
    return count(1)


@pytest.fixture
def proxy(clean_engine: PrivateEngine, proxy_number: Iterator[int]) -> Iterator[DockerApiProxy]:
    """A proxy in front of the clean engine."""
    socket = clean_engine.folder / f"p{next(proxy_number)}.sock"
    running = DockerApiProxy(clean_engine.socket, socket).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def registry() -> Iterator[LocalRegistry]:
    """An open registry."""
    local = LocalRegistry()
    try:
        yield local.start()
    finally:
        local.destroy()


@pytest.fixture(scope="session")
def private_registry() -> Iterator[LocalRegistry]:
    """A registry behind a password."""
    local = LocalRegistry(username="alice", password="s3cret")
    try:
        yield local.start()
    finally:
        local.destroy()
