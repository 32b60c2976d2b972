"""Overlapping cycles on a real engine: a build that takes long holds nobody up, is never doubled,
and ends when it is told to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from agent.protocol import naming
from agent.protocol.state import DesiredBuild
from tests.engine.agent_inside import AgentInside
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import snapshot, wait_for_end
from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.ground.proxy import DockerApiProxy

INTERVAL = 1.0
LONG = f"FROM {BUSYBOX}\nRUN echo begun && sleep 600\n"


@pytest.fixture
def host() -> Iterator[DesiredHost]:
    desired = DesiredHost()
    desired.settings(reconcile_interval=INTERVAL)
    yield desired
    desired.close()


@pytest.fixture
def agent(
    host: DesiredHost, proxy: DockerApiProxy, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[AgentInside]:
    inside = AgentInside(host, proxy.url, tmp_path).start()
    yield inside
    inside.stop()
    eventually(lambda: steps(engine_client) == [], 15, "builds outlive their agent")


def begin_to_build(host: DesiredHost, name: str = "slow") -> None:
    host.build(name, LONG)
    eventually(
        lambda: b"begun" in host.server.book.logs.get(f"b-{name}-1", b""),
        30,
        "the long build did not begin",
    )


def builds(proxy: DockerApiProxy) -> int:
    return sum(str(call) == "POST /build" for call in proxy.calls)


def steps(client: docker.DockerClient) -> list[str]:
    """Containers in which build steps run."""
    listed = client.api.containers(all=True)
    return [found["Id"] for found in listed if not found["Names"][0].startswith("/trailer-")]


def running(client: docker.DockerClient, name: str) -> str:
    """The id of the workspace's running container, or nothing."""
    found = client.api.containers(filters={"name": f"^/trailer-{name}$", "status": "running"})
    return found[0]["Id"] if found else ""


def names(client: docker.DockerClient) -> list[str]:
    listed = client.api.containers(all=True)
    every = [found["Names"][0].lstrip("/") for found in listed]
    return sorted(name for name in every if name.startswith("trailer-"))


def test_a_long_build_holds_back_nothing_else(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    begin_to_build(host)
    host.network("lan")
    host.workspace("quick", network_ids=("n-lan",), env={"COLOUR": "blue"})
    first = eventually(lambda: running(engine_client, "quick"), 15, "not created")
    eventually(lambda: host.status("quick").status == "running", 10, "not told")

    host.edit("quick", env={"COLOUR": "red"})
    second = eventually(
        lambda: running(engine_client, "quick") not in ("", first), 15, "not replaced"
    )
    assert second

    host.edit("quick", name="renamed")
    eventually(lambda: running(engine_client, "renamed"), 15, "not renamed")

    snapshot(host, DesiredBuild(id="b-snap-1", number=1), workspace_id="w-quick")
    wait_for_end(host, "snap", "finished")
    assert engine_client.images.get(naming.build_ref("i-snap"))

    begun = time.monotonic()
    host.delete_workspace("quick")
    host.delete_network("lan")
    eventually(lambda: not names(engine_client), 15, "the container of a deleted workspace stays")
    gone_after = time.monotonic() - begun
    assert gone_after <= 2 * INTERVAL + 1.0, f"gone only after {gone_after:.1f} s"
    eventually(
        lambda: not engine_client.api.networks(names=["trailer-lan"]), 15, "the network stays"
    )
    for tombstone in host.tombstones.values():
        done = eventually(
            lambda: host.server.tombstone(tombstone.id),  # noqa: B023
            10,
            f"nothing was said about the removal of {tombstone.name}",
        )
        assert done is not None
        assert done.done
    assert builds(proxy) == 1
    build = host.server.build("b-slow-1")
    assert build is not None
    assert build.status == "building", "the long build was disturbed"


def test_endless_builds_do_not_starve_cleanup(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    """Both places for long work are taken all the time, and new builds keep coming."""
    for name in ("one", "two"):
        begin_to_build(host, name)
    host.build("three", LONG)
    host.workspace("quick")
    eventually(lambda: running(engine_client, "quick"), 15, "not created")
    snapshot(host, DesiredBuild(id="b-snap-1", number=1), workspace_id="w-quick")
    wait_for_end(host, "snap", "finished")
    assert engine_client.images.get(naming.build_ref("i-snap"))

    begun = time.monotonic()
    host.delete_workspace("quick")
    host.build("four", LONG)
    eventually(lambda: not names(engine_client), 15, "cleanup starves")
    assert time.monotonic() - begun <= 2 * INTERVAL + 1.0


def test_newer_cycles_join_a_running_build_and_never_double_it(
    host: DesiredHost, agent: AgentInside, proxy: DockerApiProxy
) -> None:
    begin_to_build(host)
    before = agent.cycles
    for number in range(5):
        host.workspace("other", env={"N": str(number)}, desired_state="stopped")
        agent.supervisor.poll.nudge()
        agent.supervisor.parts.wake.request("test", full=True)
        seen = agent.cycles
        eventually(lambda: agent.cycles > seen, 10, "no further cycle")  # noqa: B023
    assert agent.cycles - before >= 5
    assert builds(proxy) == 1


def test_a_workspace_waits_for_its_own_build_alone(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    begin_to_build(host)
    with host.one_edit():
        host.workspace("waits", image="slow")
        host.workspace("goes")
    eventually(lambda: running(engine_client, "goes"), 15, "an unrelated workspace waits")
    assert host.status("waits").status == "deployment_pending"
    assert "slow" in host.status("waits").message
    host.delete_workspace("waits")
    agent.supervisor.poll.nudge()
    agent.look_again_while_busy()
    assert names(engine_client) == ["trailer-goes"]


def test_cancel_ends_a_build_within_five_seconds_and_leaves_nothing_behind(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    images = {found["Id"] for found in engine_client.api.images(all=True)}
    begin_to_build(host)
    eventually(lambda: len(steps(engine_client)) == 1, 10, "no build step runs in a container")
    begun = time.monotonic()
    host.cancel_build("slow")

    def cancelled() -> bool:
        told = host.server.build("b-slow-1")
        return told is not None and told.status == "cancelled"

    eventually(cancelled, 10, "the build is not cancelled")
    eventually(lambda: steps(engine_client) == [], 10, "the build step runs on")
    assert time.monotonic() - begun <= 5.0
    agent.settle()
    assert {found["Id"] for found in engine_client.api.images(all=True)} == images
    assert builds(proxy) == 1
    agent.look_again()
    assert builds(proxy) == 1, "a cancelled build was begun again"


def test_a_deleted_image_ends_its_build(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    begin_to_build(host)
    host.delete_image("slow")
    eventually(lambda: steps(engine_client) == [], 10, "the build runs on")
    agent.settle()
    told = host.server.tombstone(next(iter(host.tombstones.values())).id)
    assert told is not None
    assert told.done


def test_a_build_that_an_ended_agent_left_is_run_again_once(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    begin_to_build(host)
    agent.stop()
    eventually(lambda: steps(engine_client) == [], 10, "the old build runs on")
    told = host.server.build("b-slow-1")
    assert told is not None
    assert told.status == "building", "an agent that stops says nothing about a build's end"
    agent.restart()
    eventually(lambda: builds(proxy) == 2, 15, "the build was not begun again")
    agent.look_again_while_busy()
    assert builds(proxy) == 2
