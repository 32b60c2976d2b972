"""Fixtures for the agent on a real engine: a fake server, and agents that are always ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.fake_server import FakeServer
from tests.engine.agent_inside import AgentInside
from tests.engine.agent_process import AgentProcess
from tests.engine.agent_scene import Launch
from tests.engine.desired_host import DesiredHost
from tests.ground.engine import PrivateEngine
from tests.ground.proxy import DockerApiProxy


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer().start()
    yield fake
    fake.stop()


@pytest.fixture
def host() -> Iterator[DesiredHost]:
    """A host as it should be, told by a fake server."""
    desired = DesiredHost()
    yield desired
    desired.close()


@pytest.fixture
def agent(
    host: DesiredHost, proxy: DockerApiProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AgentInside]:
    """Its agent, in this process, on the clean engine. It keeps no old container for long."""
    monkeypatch.setattr("agent.diff.replaces.STEADY_SECONDS", 0.5)
    inside = AgentInside(host, proxy.url, tmp_path).start()
    yield inside
    inside.stop()


@pytest.fixture
def launch(server: FakeServer, clean_engine: PrivateEngine, tmp_path: Path) -> Iterator[Launch]:
    """Starts agents on the clean engine, all with the same state folder; kills what is left."""
    started: list[AgentProcess] = []

    def start(url: str = "", folder: str = "state") -> AgentProcess:
        agent = AgentProcess(server, url or clean_engine.url, tmp_path / folder)
        started.append(agent)
        return agent.start()

    yield start
    for agent in started:
        agent.kill()
        print(agent.log)
