"""The agent is killed at every call that changes the engine; the host still comes out right."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from agent.protocol.spec import MountSpec
from agent.protocol.state import DesiredWorkspace
from tests.agent.documents import image, network, tombstone, volume, workspace
from tests.agent.fake_server import FakeServer
from tests.engine.agent_process import AgentProcess
from tests.ground.faults import Call, Moment
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import eventually

DATA = MountSpec(target="/data", source="trailer-data", volume_id="v-data")
MOST_DEATHS = 60


def sleeper(name: str, **fields: Any) -> DesiredWorkspace:
    given = {"image_ref": BUSYBOX, "command": tuple(RUN_UNTIL_STOPPED), **fields}
    return workspace(name, **given)


FIRST: dict[str, Any] = {
    "images": (image("bb", ref=BUSYBOX),),
    "networks": (network(), network("dmz")),
    "volumes": (volume(),),
    "workspaces": (
        sleeper("calm", network_ids=("n-lan",)),
        sleeper("edited", network_ids=("n-lan", "n-dmz"), mounts=(DATA,)),
        sleeper("moved", network_ids=("n-lan",)),
        sleeper("stopped"),
        sleeper("doomed", network_ids=("n-dmz",)),
    ),
}
SECOND: dict[str, Any] = {
    "images": FIRST["images"],
    "networks": (network(),),
    "workspaces": (
        sleeper("calm", network_ids=("n-lan",)),
        sleeper("edited", network_ids=("n-lan",), env={"A": "2"}, revision=2),
        sleeper("renamed", id="w-moved", revision=2),
        sleeper("stopped", desired_state="stopped", revision=2),
    ),
    "tombstones": (
        tombstone("workspace", "w-doomed", "trailer-doomed"),
        tombstone("network", "n-dmz", "trailer-dmz"),
        tombstone("volume", "v-data", "trailer-data"),
    ),
}
# What each phase must end with: container name -> state, Trailer's networks and volumes.
FIRST_HOST = (
    dict.fromkeys(["calm", "edited", "moved", "stopped", "doomed"], "running"),
    {"trailer-lan", "trailer-dmz"},
    {"trailer-data"},
)
SECOND_HOST = (
    {"calm": "running", "edited": "running", "renamed": "running", "stopped": "exited"},
    {"trailer-lan"},
    set[str](),
)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer().start()
    yield fake
    fake.stop()


class Host:
    """The engine as a bystander sees it."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.client = client
        self.foreign = client.containers.run(
            BUSYBOX, RUN_UNTIL_STOPPED, name="foreign", detach=True
        )
        self.foreign.reload()

    def picture(self) -> tuple[dict[str, str], set[str], set[str]]:
        listed = self.client.api.containers(all=True)
        containers = {
            c["Names"][0].removeprefix("/trailer-"): str(c["State"])
            for c in listed
            if c["Id"] != self.foreign.id
        }
        networks = {n["Name"] for n in self.client.api.networks(names=["trailer-"])}
        volumes = {v["Name"] for v in self.client.api.volumes()["Volumes"] or ()}
        return containers, networks, volumes

    def started_at(self, name: str) -> str:
        return str(self.client.containers.get(name).attrs["State"]["StartedAt"])

    def has_no_duplicates(self) -> bool:
        listed = self.client.api.containers(filters={"label": "trailer.workspace"})
        owners = [c["Labels"]["trailer.workspace"] for c in listed]
        return len(owners) == len(set(owners))


def dies(agent: AgentProcess, host: Host, goal: tuple[dict[str, str], set[str], set[str]]) -> bool:
    """Wait until the agent is dead, or all is done and it lives on."""
    eventually(
        lambda: not agent.is_running() or host.picture() == goal,
        30,
        f"neither dead nor done: {host.picture()}",
    )
    return not agent.is_running()


def kill_until(
    host: Host,
    proxy: DockerApiProxy,
    launch: Callable[[], AgentProcess],
    goal: tuple[dict[str, str], set[str], set[str]],
    moment: Moment,
) -> int:
    """Start agents that die at their first change, until all is done."""
    for deaths in range(MOST_DEATHS):
        proxy.reset()
        agents: list[AgentProcess] = []

        def kill(_: Call, victims: list[AgentProcess] = agents) -> None:
            os.kill(victims[0].pid, signal.SIGKILL)

        proxy.kill_point(1, moment, kill)
        agents.append(launch())
        if not dies(agents[0], host, goal):
            agents[0].kill()
            return deaths
        assert host.has_no_duplicates()
    raise AssertionError(f"not done after {MOST_DEATHS} deaths: {host.picture()}")


# The hardest moment: the engine did it, the agent never heard.
@pytest.mark.parametrize("moment", [Moment.AFTER_EXECUTE])
def test_an_agent_killed_at_every_change_still_gets_there(
    server: FakeServer,
    engine_client: docker.DockerClient,
    proxy: DockerApiProxy,
    tmp_path: Path,
    moment: Moment,
) -> None:
    host = Host(engine_client)
    before = host.started_at("foreign")
    started: list[AgentProcess] = []

    def launch() -> AgentProcess:
        # One step at a time: each run then gets exactly one call further.
        one = {"TRAILER_AGENT_ENGINE_WORKERS": "1"}
        started.append(AgentProcess(server, proxy.url, tmp_path, **one))
        return started[-1].start()

    try:
        server.desire(**FIRST)
        assert kill_until(host, proxy, launch, FIRST_HOST, moment) >= 5
        calm = host.started_at("trailer-calm")
        moved = engine_client.containers.get("trailer-moved").id
        server.desire(**SECOND)
        assert kill_until(host, proxy, launch, SECOND_HOST, moment) >= 5
        proxy.reset()
        launch()
        eventually(lambda: all(server.tombstone(t.id) for t in SECOND["tombstones"]), 20)
        assert host.picture() == SECOND_HOST
        assert host.started_at("trailer-calm") == calm
        assert host.started_at("foreign") == before
        assert engine_client.containers.get("trailer-renamed").id == moved
    finally:
        for agent in started:
            agent.kill()
            print(agent.log)
