"""Fixtures of the real PostgreSQL and Redis, and of the running product."""

from collections.abc import Callable, Iterator

import pytest

from tests.ground.engine import PrivateEngine
from tests.ground.postgres import PrivatePostgres
from tests.ground.redis import PrivateRedis
from tests.ground.server import RunningTrailer

TrailerFactory = Callable[..., RunningTrailer]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Address of a PostgreSQL server, as DATABASE_URL takes it."""
    server = PrivatePostgres()
    try:
        yield server.start().url
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[PrivateRedis]:
    """A Redis server; a test that stops it starts it again."""
    server = PrivateRedis()
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def redis_url(redis_server: PrivateRedis) -> str:
    """Address of a Redis server, as REDIS_URL takes it."""
    return redis_server.url


@pytest.fixture
def trailer_factory() -> Iterator[TrailerFactory]:
    """Make running servers: `trailer_factory(docker_host, **settings)`; gone after the test."""
    made: list[RunningTrailer] = []

    def make(docker_host: str, **settings: str) -> RunningTrailer:
        server = RunningTrailer(docker_host, settings)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.destroy()


@pytest.fixture
def running_trailer(clean_engine: PrivateEngine) -> Iterator[RunningTrailer]:
    """A fresh server on the clean engine."""
    server = RunningTrailer(clean_engine.url)
    try:
        yield server.start()
    finally:
        server.destroy()
