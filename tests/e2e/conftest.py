"""The fixtures of end-to-end tests: one running Trailer for each file of tests."""

from collections.abc import Iterator

import docker
import pytest

from tests.e2e.scenario import User
from tests.ground.engine import PrivateEngine
from tests.ground.server import RunningTrailer


@pytest.fixture(scope="module")
def module_trailer(engine: PrivateEngine) -> Iterator[RunningTrailer]:
    """One server for all tests of a file: a start takes seconds of a core."""
    engine.clean()
    server = RunningTrailer(engine.url)
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def running_trailer(
    module_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> Iterator[RunningTrailer]:
    """The file's server on the clean engine; what a test makes is gone after it."""
    yield module_trailer
    User(module_trailer).clear(engine_client)
