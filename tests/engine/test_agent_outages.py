"""The agent as a process on a real engine: idle, killed, superseded, without engine or server."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.agent.documents import network
from tests.agent.fake_server import FakeServer
from tests.engine.agent_process import AgentProcess
from tests.engine.agent_scene import (
    START,
    Launch,
    busybox,
    container,
    new_running_container,
    running,
    sleeper,
    state_of,
)
from tests.ground.engine import PrivateEngine
from tests.ground.faults import Moment
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import always, eventually


def test_an_idle_agent_is_silent(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> None:
    server.desire(
        images=(busybox(),),
        networks=(network(),),
        workspaces=tuple(sleeper(f"w{n}", network_ids=("n-lan",)) for n in range(3)),
    )
    launch(proxy.url)
    for number in range(3):
        running(server, f"w-w{number}")
    eventually(lambda: len(server.cycles()) >= 1)

    def polls() -> int:
        return server.book.requests.count("GET /state")

    def settled() -> bool:
        before = (len(proxy.calls), len(server.book.items), polls())
        eventually(lambda: polls() >= before[2] + 2)
        return (len(proxy.calls), len(server.book.items)) == before[:2]

    eventually(settled, START, "the agent does not come to rest")
    proxy.forget_calls()
    seen = len(server.book.items), polls(), len(server.book.heartbeats)
    eventually(lambda: polls() >= seen[1] + 5)
    assert [str(call) for call in proxy.calls] == []
    assert len(server.book.items) == seen[0]
    assert len(server.book.heartbeats) > seen[2]


@pytest.mark.parametrize("moment", [Moment.AFTER_EXECUTE, Moment.AFTER_REPLY])
def test_an_agent_killed_between_create_and_start_makes_no_duplicate(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    proxy: DockerApiProxy,
    moment: Moment,
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    agents: list[AgentProcess] = []
    point = proxy.kill_point(1, moment, lambda _: os.kill(agents[0].pid, signal.SIGKILL))
    agents.append(launch(proxy.url))
    agents[0].wait()
    assert point.reached[0].template == "/containers/create"
    eventually(lambda: state_of(engine_client)[1] == "created")
    launch(proxy.url)
    running(server)
    (only,) = engine_client.containers.list(all=True)
    assert only.name == "trailer-web"
    creates = [c for c in proxy.mutating_calls if c.template == "/containers/create"]
    assert len(creates) == 1


def test_the_engine_may_go_away_and_come_back(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(engine.url, "other")
    running(server)
    engine.stop()

    def complains() -> bool:
        return bool(server.book.heartbeats[-1].message)

    eventually(complains, START, "the heartbeat does not say that the engine is away")
    assert server.status_word("w-web") != "stopped"
    engine.start()
    eventually(lambda: not complains(), START)
    with closing(engine.client()) as client:
        eventually(lambda: state_of(client)[1] == "running", START)


def test_a_frozen_engine_is_reported_while_it_hangs(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(engine.url, "other")
    running(server)
    engine.freeze()
    server.desire(images=(busybox(),), workspaces=(sleeper(), sleeper("late")))
    eventually(lambda: "not answer" in server.book.heartbeats[-1].message, 30)
    engine.thaw()
    running(server, "w-late")
    eventually(lambda: not server.book.heartbeats[-1].message)


def test_workspaces_outlive_the_server_and_the_agent(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    agent = launch()
    running(server)
    server.stop()
    old = container(engine_client)
    old.remove(force=True)
    second = new_running_container(engine_client, str(old.id))
    assert agent.stop() == 0
    assert container(engine_client).status == "running"
    # Booted without a server, the agent keeps its workspaces up from the last good document.
    launch()
    container(engine_client).remove(force=True)
    third = new_running_container(engine_client, second)
    server.start()
    eventually(lambda: third in str(server.status("w-web")), START)


def test_a_newer_agent_of_the_same_host_ends_the_older_one(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    first = launch()
    running(server)
    launch(folder="copy")
    assert first.wait() == 3
    assert "another agent runs this host" in first.log
    always(
        lambda: len(engine_client.containers.list(all=True, ignore_removed=True)) == 1,
        1.0,
        "never two",
    )


def test_an_agent_without_a_credential_says_so(
    server: FakeServer, clean_engine: PrivateEngine, tmp_path: Path
) -> None:
    agent = AgentProcess(server, clean_engine.url, tmp_path)
    (tmp_path / "identity.json").unlink()
    ended = agent.command("once")
    assert ended.returncode == 2
    assert "has no credential" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_once_does_one_cycle_and_plan_shows_the_next(
    server: FakeServer, clean_engine: PrivateEngine, tmp_path: Path
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    agent = AgentProcess(server, clean_engine.url, tmp_path)
    assert agent.command("once").returncode == 0
    assert server.status_word("w-web") == "running"
    assert agent.command("plan").stdout == "nothing to do\n"
    with closing(clean_engine.client()) as client:
        container(client).remove(force=True)
    assert "container was removed outside Trailer" in agent.command("plan").stdout
