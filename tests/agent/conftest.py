"""Fixtures of the agent's tests: a bench on an in-memory engine, and a fake server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.bench import Bench
from tests.agent.fake_server import FakeServer


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def fake_server() -> Iterator[FakeServer]:
    server = FakeServer().start()
    yield server
    server.stop()
