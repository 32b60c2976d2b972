"""Fixtures of the agent's tests: a bench on an in-memory engine, and a fake server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.runtime.fake import FakeRuntime
from tests.agent.bench import Bench
from tests.agent.documents import IMAGE_REF
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, Running


@pytest.fixture(autouse=True)
def _steady_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new container in memory that runs is up: nobody waits ten seconds for it."""
    monkeypatch.setattr("agent.diff.replaces.STEADY_SECONDS", 0.0)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def fake_server() -> Iterator[FakeServer]:
    server = FakeServer().start()
    yield server
    server.stop()


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add_image(IMAGE_REF)
    return runtime


@pytest.fixture
def launch(fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path) -> Iterator[Launch]:
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(fake_server, runtime, tmp_path))
        return started[-1]

    yield start
    for running in started:
        running.stop()
