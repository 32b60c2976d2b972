"""Fixtures of the real PostgreSQL, Redis and git, and of the running product."""

from collections.abc import Callable, Iterator

import pytest

from tests.ground.gitserver import GitServer
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


@pytest.fixture(scope="module")
def git_server() -> Iterator[GitServer]:
    """A git server; a test that makes it refuse or redirect undoes that."""
    server = GitServer()
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def trailer_factory() -> Iterator[TrailerFactory]:
    """Make running servers: `trailer_factory(docker_host, **settings)`; gone after the test."""
    made: list[RunningTrailer] = []

    def make(docker_host: str, *, from_nothing: bool = False, **settings: str) -> RunningTrailer:
        server = RunningTrailer(docker_host, settings, from_nothing=from_nothing)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.destroy()
