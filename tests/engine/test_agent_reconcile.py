"""The agent as a process on a real engine: create, heal, stop, remove, and whom it leaves be."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec
from agent.protocol.state import DesiredImage, DesiredWorkspace
from tests.agent.documents import image, network, tombstone, volume, workspace
from tests.agent.fake_server import FakeServer
from tests.engine.agent_process import AgentProcess
from tests.ground.engine import PrivateEngine
from tests.ground.faults import Moment
from tests.ground.images import BUSYBOX, HTTPD, HTTPD_HEALTH_COMMAND, RUN_UNTIL_STOPPED
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import always, eventually

START = 20.0
# Asks the workspace by its alias for ever; a static busybox cannot look names up in wget itself.
ASK = """
while :; do
    at=$(nslookup -type=a web 127.0.0.11 | awk '/^Address: / {print $2; exit}')
    wget -q -O /dev/null "http://$at/" && echo hit || echo "miss at $at"
done
"""
Launch = Callable[..., AgentProcess]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer().start()
    yield fake
    fake.stop()


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


def busybox(**fields: Any) -> DesiredImage:
    return image("bb", ref=BUSYBOX, **fields)


def sleeper(name: str = "web", **fields: Any) -> DesiredWorkspace:
    given = {"image_ref": BUSYBOX, "command": tuple(RUN_UNTIL_STOPPED), **fields}
    return workspace(name, **given)


def container(client: docker.DockerClient, name: str = "trailer-web") -> Container:
    return client.containers.get(name)


def state_of(client: docker.DockerClient, name: str = "trailer-web") -> tuple[str, str]:
    """(id, state) of a container; empty while there is none of that name."""
    listed = client.api.containers(all=True, filters={"name": f"^/{name}$"})
    return next(((str(c["Id"]), str(c["State"])) for c in listed), ("", ""))


def names(client: docker.DockerClient) -> set[str]:
    return {c["Names"][0].lstrip("/") for c in client.api.containers(all=True)}


def running(server: FakeServer, workspace_id: str = "w-web", revision: int = 1) -> None:
    def reached() -> bool:
        status = server.status(workspace_id)
        return status is not None and (status.status, status.revision) == ("running", revision)

    eventually(reached, START, f"{workspace_id} does not run: {server.status(workspace_id)}")


def new_running_container(client: docker.DockerClient, old_id: str) -> str:
    def found() -> str:
        listed = client.api.containers(filters={"name": "^/trailer-web$", "status": "running"})
        return next((str(c["Id"]) for c in listed if c["Id"] != old_id), "")

    return eventually(found, START, "no new container")


def test_a_workspace_is_created_as_it_was_asked_for(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, tmp_path: Path
) -> None:
    (tmp_path / "bind").mkdir()
    web = sleeper(
        env={"A": "1"},
        secret_env={"TOKEN": "s3cret"},
        cpus=0.5,
        memory_bytes=64 * 2**20,
        shm_bytes=16 * 2**20,
        ports=(PortSpec(container_port=80), PortSpec(container_port=53, protocol="udp")),
        mounts=(
            MountSpec(target="/data", source="trailer-data", volume_id="v-data"),
            MountSpec(target="/bind", kind="bind", source=str(tmp_path / "bind"), read_only=True),
        ),
        network_ids=("n-lan", "n-dmz"),
        labels={"team": "a"},
    )
    server.desire(
        images=(busybox(done=False),),
        networks=(network(), network("dmz", internal=True)),
        volumes=(volume(),),
        workspaces=(web,),
    )
    launch()
    running(server)
    made = container(engine_client).attrs
    host = made["HostConfig"]
    assert {"A=1", "TOKEN=s3cret"} <= set(made["Config"]["Env"])
    assert made["Config"]["Hostname"] == "web"
    assert (host["NanoCpus"], host["Memory"], host["ShmSize"]) == (5 * 10**8, 2**26, 2**24)
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert set(made["NetworkSettings"]["Ports"]) == {"80/tcp", "53/udp"}
    mounts = {m["Destination"]: (m["Type"], m["RW"]) for m in made["Mounts"]}
    assert mounts == {"/data": ("volume", True), "/bind": ("bind", False)}
    networks = made["NetworkSettings"]["Networks"]
    assert set(networks) == {"trailer-lan", "trailer-dmz"}
    assert all("web" in place["Aliases"] for place in networks.values())
    labels = made["Config"]["Labels"]
    assert labels["trailer.workspace"] == "w-web"
    assert labels["team"] == "a"
    assert "s3cret" not in str(labels)
    assert engine_client.networks.get("trailer-dmz").attrs["Internal"] is True
    for object_id in ("n-lan", "n-dmz", "v-data"):
        known = server.resource(object_id)
        assert known is not None
        assert known.status == "created"
    build = server.build("b-bb")
    assert build is not None
    assert (build.status, build.engine_id) == ("finished", made["Image"])
    assert [event.event for event in server.events("w-web")] == ["create"]


def test_a_removed_container_is_back_within_two_seconds(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    old = container(engine_client)
    old.remove(force=True)
    eventually(lambda: new_running_container(engine_client, str(old.id)), 2.0)
    eventually(lambda: [e.event for e in server.events("w-web")] == ["create", "heal"])
    assert server.events("w-web")[1].cause == "container was removed outside Trailer"


@pytest.mark.parametrize("deed", ["stop", "kill", "pause"])
def test_a_container_that_was_stopped_by_hand_runs_again(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, deed: str
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    victim = container(engine_client)
    getattr(victim, deed)()
    eventually(lambda: state_of(engine_client) == (victim.id, "running"), START)
    eventually(lambda: [e.event for e in server.events("w-web")] == ["create", "heal"])


def test_a_cut_network_and_a_new_name_are_put_right_in_place(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    web = sleeper(network_ids=("n-lan",))
    server.desire(images=(busybox(),), networks=(network(),), workspaces=(web,))
    launch()
    running(server)
    victim = container(engine_client)
    lan = engine_client.networks.get("trailer-lan")
    lan.disconnect(victim)

    def joined() -> bool:
        places = container(engine_client).attrs["NetworkSettings"]["Networks"]
        return "web" in (places.get("trailer-lan", {}).get("Aliases") or ())

    eventually(joined, START)
    victim.rename("not-yours")
    eventually(lambda: state_of(engine_client)[0] == victim.id, START)
    engine_client.api.update_container(str(victim.id), mem_limit="32m", memswap_limit="64m")
    new_running_container(engine_client, str(victim.id))


def test_stop_and_start_keep_the_container_and_deleting_removes_it(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    first = container(engine_client).id
    server.desire(images=(busybox(),), workspaces=(sleeper(desired_state="stopped", revision=2),))
    eventually(lambda: server.status_word("w-web") == "stopped", START)
    assert container(engine_client).status == "exited"
    server.desire(images=(busybox(),), workspaces=(sleeper(revision=3),))
    running(server, revision=3)
    assert container(engine_client).id == first
    assert [e.event for e in server.events("w-web")] == ["create", "stop", "start"]
    order = tombstone("workspace", "w-web", "trailer-web")
    server.desire(images=(busybox(),), tombstones=(order,))
    eventually(lambda: server.tombstone(order.id), START)
    assert engine_client.containers.list(all=True) == []


def test_foreign_containers_are_left_alone_and_named(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    holder = engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, name="trailer-web", detach=True
    )
    server.desire(images=(busybox(),), workspaces=(sleeper(), sleeper("shop")))
    launch()
    running(server, "w-shop")
    eventually(lambda: server.status_word("w-web") == "error", START)
    status = server.status("w-web")
    assert status is not None
    assert f"trailer-web ({str(holder.id)[:12]})" in status.message
    shop = container(engine_client, "trailer-shop")
    impostor = engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, name="impostor", labels=shop.labels, detach=True
    )
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    eventually(lambda: names(engine_client) == {"trailer-web", "impostor"}, START)
    for foreign in (holder, impostor):
        before = foreign.attrs["State"]["StartedAt"]
        foreign.reload()
        assert foreign.status == "running"
        assert before in ("0001-01-01T00:00:00Z", foreign.attrs["State"]["StartedAt"])
    holder.remove(force=True)
    running(server)


def test_an_edit_replaces_the_container_and_says_why(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(env={"A": "1"}),))
    launch()
    running(server)
    old = container(engine_client)
    server.desire(images=(busybox(),), workspaces=(sleeper(env={"A": "2"}, revision=2),))
    running(server, revision=2)
    assert container(engine_client).id != old.id
    replaced = server.events("w-web")[-1]
    assert (replaced.event, replaced.cause) == ("replace", "changed: env")
    assert [(c.field, c.old, c.new) for c in replaced.changes] == [("env", {"A": "1"}, {"A": "2"})]
    assert len(engine_client.containers.list(all=True)) == 1


def test_what_the_engine_refuses_leaves_the_old_container_running(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    old = container(engine_client)
    missing = MountSpec(target="/x", kind="bind", source="/does/not/exist")
    server.desire(images=(busybox(),), workspaces=(sleeper(mounts=(missing,), revision=2),))
    eventually(lambda: server.status_word("w-web") == "error", START)
    status = server.status("w-web")
    assert status is not None
    assert "/does/not/exist" in status.message
    old.reload()
    assert old.status == "running"
    assert len(engine_client.containers.list(all=True)) == 1


def healthy_web(page: str, revision: int = 1, **fields: Any) -> DesiredWorkspace:
    check = HealthCheckSpec(test=tuple(HTTPD_HEALTH_COMMAND), interval=0.5, retries=2)
    given = {"image_ref": HTTPD, "image_id": "i-httpd", "health_check": check, **fields}
    return workspace(env={"PAGE": page}, revision=revision, network_ids=("n-lan",), **given)


def test_a_healthy_replacement_takes_over_without_downtime(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    httpd = image("httpd", ref=HTTPD)
    server.desire(images=(httpd,), networks=(network(),), workspaces=(healthy_web("1"),))
    launch()
    running(server)
    old = container(engine_client)
    asker = engine_client.containers.run(
        HTTPD,
        ["sh", "-c", ASK],
        network="trailer-lan",
        detach=True,
    )
    eventually(lambda: b"hit" in asker.logs(), START)
    server.desire(images=(httpd,), networks=(network(),), workspaces=(healthy_web("2", 2),))
    running(server, revision=2)
    new = container(engine_client)
    assert new.id != old.id
    assert "PAGE=2" in new.attrs["Config"]["Env"]
    answers = asker.logs().decode().splitlines()
    # One question may have been under way to the old container while it drained.
    assert sum(answer != "hit" for answer in answers) <= 1, answers
    asker.remove(force=True)
    assert names(engine_client) == {"trailer-web"}


def test_an_unhealthy_replacement_goes_and_the_old_one_stays(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    httpd = image("httpd", ref=HTTPD)
    server.desire(images=(httpd,), networks=(network(),), workspaces=(healthy_web("1"),))
    launch()
    running(server)
    old = container(engine_client)
    broken = healthy_web("2", 2, command=("sh", "-c", "sleep 1000"))
    server.desire(images=(httpd,), networks=(network(),), workspaces=(broken,))
    eventually(lambda: server.status_word("w-web") == "error", START)
    status = server.status("w-web")
    assert status is not None
    assert "The new container is unhealthy." in status.message
    assert "The old one keeps running." in status.message
    assert status.container_id == old.id
    assert [c.id for c in engine_client.containers.list(all=True)] == [old.id]


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
    always(lambda: len(engine_client.containers.list(all=True)) == 1, 1.0, "never two")


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
