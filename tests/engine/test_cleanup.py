"""Cleanup on a real engine: what an order removes, what nothing may remove, and long silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.loop.wake import Reasons
from agent.protocol import naming
from agent.protocol.spec import MountSpec
from tests.agent.documents import tombstone
from tests.agent.fake_server import HOST_ID, HOST_KEY
from tests.engine.agent_inside import AgentInside, silent
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.size import IDLE_CYCLES, IDLE_WORKSPACES

if TYPE_CHECKING:
    import docker

    from tests.engine.desired_host import DesiredHost
    from tests.ground.proxy import DockerApiProxy

DATA = MountSpec(target="/data", source="trailer-data", volume_id="v-data")


def deploy(host: DesiredHost, agent: AgentInside, *names: str, **fields: Any) -> None:
    with host.one_edit():
        for name in names:
            host.workspace(name, **fields)
    agent.settle(60)


def names(client: docker.DockerClient) -> list[str]:
    return sorted(found["Names"][0].lstrip("/") for found in client.api.containers(all=True))


# --- the brake -----------------------------------------------------------------------------------


def test_a_document_that_lost_most_of_its_workspaces_removes_nothing_and_says_so_once(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent, "a", "b", "c", "d", "e")
    everything = names(engine_client)
    proxy.forget_calls()
    told = len(host.server.cycles())
    host.lose("a", "b", "c", "d")
    agent.settle()
    for _ in range(3):
        agent.look_again()
    assert [str(call) for call in proxy.mutating_calls] == []
    assert names(engine_client) == everything
    cycles = host.server.cycles()[told:]
    assert [cycle.cleanup for cycle in cycles] == ["held"]
    assert "4 of 5 containers" in cycles[0].message
    # Work goes on meanwhile.
    host.edit("e", env={"COLOUR": "red"})
    agent.settle()
    assert host.events("e")[-1].event == "replace"
    assert names(engine_client) == everything


def test_a_held_cleanup_stays_held_when_the_user_orders_one_of_the_removals(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    """Three are left without an order then, which alone would be within the limit."""
    deploy(host, agent, "a", "b", "c", "d", "e")
    with host.one_edit():
        host.lose("a", "b", "c")
        del host.workspaces["d"]
    agent.settle()
    assert len(names(engine_client)) == 5
    with host.one_edit():
        host.workspace("d")
        host.delete_workspace("d")
    agent.settle()
    agent.look_again()
    assert names(engine_client) == ["trailer-a", "trailer-b", "trailer-c", "trailer-e"]


def test_workspaces_that_come_back_after_a_held_cleanup_go_on_as_they_were(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent, "a", "b", "c", "d", "e")
    lost = {name: host.workspaces[name] for name in "abcd"}
    host.lose(*lost)
    agent.settle()
    proxy.forget_calls()
    host.workspaces.update(lost)
    host.publish()
    agent.settle()
    silent(agent, proxy)
    assert host.status("a").status == "running"


def test_three_lost_workspaces_are_within_the_brakes_limit(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    deploy(host, agent, "a", "b", "c", "d", "e")
    host.lose("a", "b", "c")
    agent.settle()
    assert names(engine_client) == ["trailer-d", "trailer-e"]
    assert [event.cause for event in host.events("a")][-1] == "no longer in the state document"


def test_tombstones_remove_any_number_at_once(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent, "a", "b", "c", "d", "e")
    with host.one_edit():
        for name in "abcde":
            host.delete_workspace(name)
    agent.settle()
    assert names(engine_client) == []
    for name in "abcde":
        last = host.events(name)[-1]
        assert (last.event, last.cause) == ("remove", "workspace was deleted")
    done = [host.server.tombstone(order.id) for order in host.tombstones.values()]
    assert all(row is not None and row.done for row in done)
    silent(agent, proxy)


# --- data ----------------------------------------------------------------------------------------


def test_a_volume_goes_only_by_tombstone_and_only_once_nobody_mounts_it(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    host.volume("data")
    deploy(host, agent, "web", mounts=(DATA,))
    del host.volumes["data"]
    host.delete_workspace("web")
    agent.settle()
    agent.look_again()
    assert names(engine_client) == []
    assert [volume.name for volume in engine_client.volumes.list()] == ["trailer-data"]
    assert [str(c) for c in proxy.mutating_calls if c.path.startswith("/volumes/trailer")] == []

    host.volume("data")
    host.delete_volume("data")
    agent.settle()
    assert engine_client.volumes.list() == []
    silent(agent, proxy)


def test_deleting_a_workspace_with_its_volume_network_and_image_leaves_nothing(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    with host.one_edit():
        host.volume("data")
        host.network("lan")
        host.build("made", f"FROM {BUSYBOX}\nLABEL made=here\n")
        host.workspace("web", image="made", mounts=(DATA,), network_ids=("n-lan",))
    agent.settle()
    told = len(host.server.cycles())
    with host.one_edit():
        host.delete_workspace("web")
        host.delete_volume("data")
        host.delete_network("lan")
        host.delete_image("made")
    agent.settle()
    assert names(engine_client) == []
    assert engine_client.volumes.list() == []
    assert engine_client.api.networks(names=["trailer-lan"]) == []
    assert engine_client.api.images("trailer/i-made") == []
    assert engine_client.api.images(BUSYBOX), "the base image is not ours to remove"
    cycles = host.server.cycles()[told:]
    assert [cycle.outcome for cycle in cycles] == ["ok"] * len(cycles)
    assert len(cycles) <= 2
    silent(agent, proxy)


# --- others --------------------------------------------------------------------------------------


def impostors(ours: dict[str, str]) -> dict[str, dict[str, str]]:
    """Container names with the labels they carry, copied or forged from those of one of ours."""
    signed = {
        naming.LABEL_MANAGED: "true",
        naming.LABEL_HOST: HOST_ID,
        naming.LABEL_WORKSPACE: "w-gone",
        naming.LABEL_SIGNATURE: naming.signature("another-key", "workspace", "w-gone", HOST_ID),
    }
    ours_elsewhere = naming.signature(HOST_KEY, "workspace", "w-gone", HOST_ID)
    return {
        "plain": {},
        "copied": ours,
        "trailer-stolen": {**ours, naming.LABEL_WORKSPACE: "w-gone"},
        "trailer-forged": signed,
        "elsewhere": {**signed, naming.LABEL_SIGNATURE: ours_elsewhere},
    }


def test_foreign_objects_and_impostors_are_never_touched(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    """Objects with our labels, our names, our labels and names, or a signature of another host."""
    deploy(host, agent, "web")
    made = impostors(engine_client.containers.get("trailer-web").labels)
    for name, labels in made.items():
        engine_client.containers.run(
            BUSYBOX, RUN_UNTIL_STOPPED, name=name, labels=labels, detach=True
        )
    label = {naming.LABEL_MANAGED: "true", naming.LABEL_NETWORK: "n-gone"}
    engine_client.networks.create("trailer-gone", labels=label)
    engine_client.volumes.create("trailer-gone", labels={naming.LABEL_VOLUME: "v-gone"})
    agent.settle()
    api = engine_client.api
    before = [
        *(api.inspect_container(name) for name in made),
        api.inspect_network("trailer-gone"),
        api.inspect_volume("trailer-gone"),
    ]
    proxy.forget_calls()
    with host.one_edit():
        host.tombstones["x"] = tombstone("volume", "v-gone", "trailer-gone")
        host.tombstones["y"] = tombstone("network", "n-gone", "trailer-gone")
        host.tombstones["z"] = tombstone("workspace", "w-gone", "trailer-stolen")
    agent.settle()
    for _ in range(50):
        agent.supervisor.cycles.cycle(Reasons(full=True))
    agent.settle()
    assert [f"{call.method} {call.path}" for call in proxy.mutating_calls] == []
    after = [
        *(api.inspect_container(name) for name in made),
        api.inspect_network("trailer-gone"),
        api.inspect_volume("trailer-gone"),
    ]
    assert after == before


def test_an_image_that_was_here_before_is_not_removed_with_its_image_row(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    deploy(host, agent, "web")
    host.delete_workspace("web")
    host.delete_image("bb")
    agent.settle()
    assert engine_client.api.images(BUSYBOX)
    done = [host.server.tombstone(order.id) for order in host.tombstones.values()]
    assert all(row is not None and row.done for row in done)


# --- silence -------------------------------------------------------------------------------------


# A thousand take over a minute alone, four beside other suites.
@pytest.mark.timeout(900)
def test_cycle_after_cycle_over_many_workspaces_changes_nothing(
    host: DesiredHost, agent: AgentInside, proxy: DockerApiProxy
) -> None:
    with host.one_edit():
        host.network("lan")
        host.volume("data")
        for number in range(IDLE_WORKSPACES):
            host.workspace(
                f"w{number}",
                network_ids=("n-lan",) if number % 2 else (),
                mounts=(DATA,) if number % 5 == 0 else (),
                memory_bytes=64 * 1024 * 1024 if number % 3 == 0 else None,
            )
    agent.settle(120)
    agent.look_again()
    told = len(host.server.book.items)
    proxy.forget_calls()
    for number in range(IDLE_CYCLES):
        agent.supervisor.cycles.cycle(Reasons(full=number % 100 == 0))
    agent.settle()
    assert [str(call) for call in proxy.mutating_calls] == []
    assert len(host.server.book.items) == told, "a host at rest has nothing to tell"


def test_a_cycle_without_a_reason_makes_no_engine_call(
    host: DesiredHost, agent: AgentInside, proxy: DockerApiProxy
) -> None:
    """Unchanged documents wake nobody: the poll asks the server, and the engine is left alone."""
    deploy(host, agent, "web", "db")
    agent.look_again()
    proxy.forget_calls()
    requests = len(host.server.book.requests)
    for _ in range(20):
        agent.supervisor.poll.nudge()
        agent.supervisor.poll.poll()
    assert len(host.server.book.requests) >= requests + 20
    assert agent.is_at_rest()
    assert [str(call) for call in proxy.calls] == []
