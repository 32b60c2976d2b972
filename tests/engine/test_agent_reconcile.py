"""The agent as a process on a real engine: create, heal, stop, remove, and whom it leaves be."""

from pathlib import Path
from typing import Any

import docker
import pytest

from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec
from agent.protocol.state import DesiredWorkspace
from tests.agent.documents import image, network, tombstone, volume, workspace
from tests.agent.fake_server import FakeServer
from tests.engine.agent_scene import (
    START,
    Launch,
    busybox,
    container,
    names,
    new_running_container,
    running,
    sleeper,
    state_of,
)
from tests.ground.images import BUSYBOX, HTTPD, HTTPD_HEALTH_COMMAND, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

# Asks the workspace by its alias for ever; a static busybox cannot look names up in wget itself.
ASK = """
while :; do
    at=$(nslookup -type=a web 127.0.0.11 | awk '/^Address: / {print $2; exit}')
    wget -q -O /dev/null "http://$at/" && echo hit || echo "miss at $at"
done
"""


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
    assert (host["RestartPolicy"]["Name"], host["PidsLimit"]) == ("unless-stopped", 4096)
    assert set(made["NetworkSettings"]["Ports"]) == {"80/tcp", "53/udp"}
    mounts = {m["Destination"]: (m["Type"], m["RW"]) for m in made["Mounts"]}
    assert mounts == {"/data": ("volume", True), "/bind": ("bind", False)}
    networks = made["NetworkSettings"]["Networks"]
    assert set(networks) == {"trailer-lan", "trailer-dmz"}
    assert all("web" in place["Aliases"] for place in networks.values())
    labels = made["Config"]["Labels"]
    assert (labels["trailer.workspace"], labels["team"]) == ("w-web", "a")
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
