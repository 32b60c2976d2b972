"""What somebody does to our containers by hand, on a real engine: it heals, is told once, and
then there is silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.agent_inside import AgentInside, silent
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from docker.models.containers import Container

    from tests.engine.desired_host import DesiredHost
    from tests.ground.proxy import DockerApiProxy

MIB = 1024 * 1024


def container(client: docker.DockerClient, name: str = "web") -> Container:
    return client.containers.get(f"trailer-{name}")


def deploy(host: DesiredHost, agent: AgentInside, **fields: Any) -> None:
    """The workspace under test, and one beside it that nobody touches."""
    with host.one_edit():
        host.network("lan")
        host.network("dmz")
        usual = {"memory_bytes": 64 * MIB, "cpus": 0.5, "network_ids": ("n-lan", "n-dmz")}
        host.workspace("web", **{**usual, **fields})
        host.workspace("beside", network_ids=("n-lan",))
    agent.settle()
    agent.look_again()


def cut(network: str) -> Callable[[docker.DockerClient, Container], None]:
    def hand(client: docker.DockerClient, found: Container) -> None:
        client.networks.get(network).disconnect(found)

    return hand


def join_foreign(client: docker.DockerClient, found: Container) -> None:
    client.networks.create("foreign").connect(found)


# What was done -> (by which hand, the cause in the ledger, the fields it names, same container).
BY_HAND: dict[str, tuple[Any, str, list[str], bool]] = {
    "update-memory": (
        lambda _, found: found.update(mem_limit=32 * MIB, memswap_limit=64 * MIB),
        "limits were changed outside Trailer",
        ["memory_bytes"],
        True,
    ),
    "update-cpus": (
        lambda client, found: client.api._post_json(
            client.api._url("/containers/{0}/update", found.id), data={"NanoCpus": 250_000_000}
        ),
        "limits were changed outside Trailer",
        ["cpus"],
        True,
    ),
    "update-restart-policy": (
        lambda _, found: found.update(restart_policy={"Name": "no"}),
        "the restart policy was changed outside Trailer",
        ["restart_policy"],
        True,
    ),
    "network-disconnect": (
        cut("trailer-dmz"),
        "network cut outside Trailer",
        ["networks"],
        True,
    ),
    "last-network-disconnect": (
        cut("trailer-lan"),
        "network cut outside Trailer",
        ["networks"],
        True,
    ),
    "network-connect": (join_foreign, "joined outside Trailer", ["networks"], True),
    "rename": (
        lambda _, found: found.rename("somebody-elses"),
        "renamed outside Trailer",
        ["name"],
        True,
    ),
    "pause": (lambda _, found: found.pause(), "paused outside Trailer", [], True),
    "stop": (
        lambda _, found: found.stop(timeout=2),
        "stopped outside Trailer (exit code 0)",
        [],
        True,
    ),
    "kill": (
        lambda _, found: found.kill(),
        "stopped outside Trailer (exit code 137)",
        [],
        True,
    ),
    "remove": (
        lambda _, found: found.remove(force=True),
        "container was removed outside Trailer",
        [],
        False,
    ),
}


@pytest.mark.parametrize("drift", BY_HAND)
def test_drift_heals_is_told_once_and_then_there_is_silence(
    drift: str,
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    hand, cause, fields, same = BY_HAND[drift]
    networks = ("n-lan",) if drift == "last-network-disconnect" else ("n-lan", "n-dmz")
    deploy(host, agent, network_ids=networks)
    before, beside = container(engine_client), container(engine_client, "beside")
    rows, rows_beside = len(host.events("web")), len(host.events("beside"))
    told = len(host.server.cycles())
    hand(engine_client, before)
    eventually(lambda: len(host.events("web")) > rows, 15, "nothing was said about the drift")
    agent.settle()

    after = container(engine_client)
    assert after.status == "running"
    assert (after.id == before.id) is same
    assert after.attrs["HostConfig"]["Memory"] == 64 * MIB
    assert after.attrs["HostConfig"]["NanoCpus"] == 500_000_000
    places = after.attrs["NetworkSettings"]["Networks"]
    assert sorted(places) == sorted(f"trailer-{network[2:]}" for network in networks)
    assert all("web" in place["Aliases"] for place in places.values())
    silent(agent, proxy)
    entries = host.events("web")[rows:]
    assert [(e.event, e.cause, [c.field for c in e.changes]) for e in entries] == [
        ("heal", cause, fields)
    ]
    assert entries[0].revision == 1
    assert host.status("web").status == "running"
    assert len(host.server.cycles()) - told <= 2

    assert host.events("beside")[rows_beside:] == []
    still = container(engine_client, "beside")
    assert still.attrs["State"] == beside.attrs["State"]


def test_a_foreign_network_that_our_container_was_joined_to_is_left_alone(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    deploy(host, agent)
    foreign = engine_client.networks.create("theirs")
    theirs = engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, name="their-app", network="theirs", detach=True
    )
    foreign.connect(container(engine_client))
    eventually(
        lambda: "theirs" not in container(engine_client).attrs["NetworkSettings"]["Networks"],
        15,
        "our container stays on a network that nobody asked for",
    )
    agent.settle()
    foreign.reload()
    assert [found.id for found in foreign.containers] == [theirs.id]
    theirs.reload()
    assert list(theirs.attrs["NetworkSettings"]["Networks"]) == ["theirs"]


def test_a_stopped_workspace_that_somebody_starts_is_stopped_again(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    host.edit("web", desired_state="stopped")
    agent.settle()
    rows = len(host.events("web"))
    container(engine_client).start()
    eventually(lambda: len(host.events("web")) > rows, 15, "nothing was said about the start")
    agent.settle()
    assert container(engine_client).status == "exited"
    entries = host.events("web")[rows:]
    assert [(e.event, e.cause) for e in entries] == [("heal", "started outside Trailer")]
    silent(agent, proxy)


def test_a_stopped_workspace_whose_container_is_removed_stays_away(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    host.edit("web", desired_state="stopped")
    agent.settle()
    rows = len(host.events("web"))
    proxy.forget_calls()
    container(engine_client).remove(force=True)
    agent.look_again()
    assert [str(call) for call in proxy.mutating_calls] == []
    assert host.events("web")[rows:] == []
    assert host.status("web").status == "stopped"
    host.edit("web", desired_state="running")
    agent.settle()
    assert container(engine_client).status == "running"


def test_drift_while_the_agent_was_away_heals_when_it_comes_back(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    agent.stop()
    rows = len(host.events("web"))
    found = container(engine_client)
    found.update(mem_limit=32 * MIB, memswap_limit=64 * MIB)
    found.rename("somebody-elses")
    engine_client.networks.get("trailer-dmz").disconnect(found)
    found.stop(timeout=2)
    beside = container(engine_client, "beside").attrs["State"]
    agent.restart()
    agent.settle()
    after = container(engine_client)
    assert (after.id, after.status) == (found.id, "running")
    assert after.attrs["HostConfig"]["Memory"] == 64 * MIB
    assert sorted(after.attrs["NetworkSettings"]["Networks"]) == ["trailer-dmz", "trailer-lan"]
    assert sorted(entry.cause for entry in host.events("web")[rows:]) == [
        "limits were changed outside Trailer",
        "network cut outside Trailer",
        "renamed outside Trailer",
        "stopped outside Trailer (exit code 0)",
    ]
    assert container(engine_client, "beside").attrs["State"] == beside
    silent(agent, proxy)


def test_a_network_that_is_removed_by_hand_comes_back_with_its_members(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    agent.stop()
    pid = container(engine_client).attrs["State"]["Pid"]
    network = engine_client.networks.get("trailer-dmz")
    network.disconnect(container(engine_client), force=True)
    network.remove()
    agent.restart()
    agent.settle()
    places = container(engine_client).attrs["NetworkSettings"]["Networks"]
    assert sorted(places) == ["trailer-dmz", "trailer-lan"]
    assert container(engine_client).attrs["State"]["Pid"] == pid
    silent(agent, proxy)
