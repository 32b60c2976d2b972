"""Standalone Trailer as a user meets it: one server process, one agent, one real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import docker
import pytest

from tests.e2e.scenario import User
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.inside import file_in
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker.models.containers import Container

    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy
    from tests.ground.server import RunningTrailer


def _container(client: docker.DockerClient, name: str) -> Container | None:
    try:
        return client.containers.get(name)
    except docker.errors.NotFound:
        return None


def test_a_script_gets_a_workspace_and_takes_it_away_again(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    workspace = user.workspace("notebook", env={"COLOUR": "blue"}, memory_bytes=64 * 1024 * 1024)
    assert workspace["status"] == "deployment_pending"
    seen = user.wait_for(workspace, "running")

    container = engine_client.containers.get("trailer-notebook")
    assert seen["container_id"] == container.id
    assert container.status == "running"
    assert "COLOUR=blue" in container.attrs["Config"]["Env"]
    assert container.attrs["HostConfig"]["Memory"] == 64 * 1024 * 1024
    assert container.attrs["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    assert container.labels["trailer.workspace"] == workspace["id"]
    assert container.labels["trailer.managed"] == "true"

    user.post(f"/workspaces/{workspace['id']}/stop/")
    user.wait_for(workspace, "stopped")
    container.reload()
    assert container.status == "exited"
    user.post(f"/workspaces/{workspace['id']}/start/")
    user.wait_for(workspace, "running")
    assert engine_client.containers.get("trailer-notebook").id == container.id

    user.delete(f"/workspaces/{workspace['id']}/")
    eventually(
        lambda: _container(engine_client, "trailer-notebook") is None,
        20,
        "the container of a deleted workspace is still there",
    )
    assert running_trailer.api("GET", f"/workspaces/{workspace['id']}/").status_code == 404


def test_a_container_removed_by_hand_comes_back(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    workspace = user.running("phoenix")
    first = engine_client.containers.get("trailer-phoenix")
    first.remove(force=True)

    def back() -> bool:
        found = _container(engine_client, "trailer-phoenix")
        return found is not None and found.status == "running" and found.id != first.id

    eventually(back, 15, "the removed container did not come back")
    user.wait_for(workspace, "running")
    events = user.get(f"/workspaces/{workspace['id']}/events/")["results"]
    assert any("removed" in event["cause"].lower() for event in events), events


def test_networks_and_volumes_are_made_and_a_built_image_runs(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    host_id = user.online_host()["id"]
    network = user.post("/networks/", {"name": "lab", "host": host_id}, status=201)
    volume = user.post("/volumes/", {"name": "data", "host": host_id}, status=201)
    dockerfile = f"FROM {BUSYBOX}\nRUN echo built-here > /made\n"
    body = {"name": "made", "host": host_id, "kind": "build", "dockerfile": dockerfile}
    image = user.post("/images/", body, status=201)
    workspace = user.running(
        "builder",
        image=image["id"],
        networks=[network["id"]],
        mounts=[{"volume": volume["id"], "target": "/data"}],
    )

    container = engine_client.containers.get("trailer-builder")
    assert file_in(container, "/made") == b"built-here\n"
    assert [mount["Name"] for mount in container.attrs["Mounts"]] == ["trailer-data"]
    assert list(container.attrs["NetworkSettings"]["Networks"]) == ["trailer-lab"]
    log = running_trailer.api("GET", f"/builds/{image['current_build']}/log/")
    assert "RUN echo built-here" in log.text
    assert log.headers["Trailer-Log-Complete"] == "true"

    in_use = running_trailer.api("DELETE", f"/networks/{network['id']}/")
    assert in_use.status_code == 409
    assert "builder" in in_use.json()["message"]
    user.delete(f"/workspaces/{workspace['id']}/")
    user.delete(f"/networks/{network['id']}/")
    user.delete(f"/volumes/{volume['id']}/?confirm=data")

    def all_gone() -> bool:
        networks = [one.name for one in engine_client.networks.list()]
        volumes = [one.name for one in engine_client.volumes.list()]
        return "trailer-lab" not in networks and "trailer-data" not in volumes

    eventually(all_gone, 30, "network and volume were not removed")


def test_a_foreign_container_is_never_touched_and_a_foreign_holder_is_named(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    host_id = user.online_host()["id"]
    holder = engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, name="trailer-taken", detach=True
    )
    impostor = engine_client.containers.run(
        BUSYBOX,
        RUN_UNTIL_STOPPED,
        name="impostor",
        detach=True,
        labels={
            "trailer.managed": "true",
            "trailer.host": host_id,
            "trailer.workspace": "11111111-1111-1111-1111-111111111111",
        },
    )
    workspace = user.workspace("taken")
    other = user.workspace("other")
    seen = user.wait_for(workspace, "error")
    assert "trailer-taken" in seen["message"]
    user.wait_for(other, "running")

    for foreign in (holder, impostor):
        before = foreign.attrs["State"]
        foreign.reload()
        assert foreign.status == "running"
        assert foreign.attrs["State"]["StartedAt"] == before["StartedAt"] or before["Pid"] == 0

    holder.remove(force=True)
    user.wait_for(workspace, "running", timeout=60)
    impostor.reload()
    assert impostor.status == "running"


def test_workspaces_run_on_while_the_server_is_away_and_statuses_arrive_later(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    workspace = user.running("steady")
    started = engine_client.containers.get("trailer-steady").attrs["State"]["StartedAt"]
    # Stopped in the middle of its work: no answer that the agent waits for is left out.
    busy = [user.workspace(f"busy-{number}") for number in range(4)]
    assert running_trailer.stop() == 0
    assert engine_client.containers.get("trailer-steady").status == "running"
    running_trailer.start()
    user.online_host()
    user.patch(f"/workspaces/{workspace['id']}/", {"description": "still here"})
    for each in (workspace, *busy):
        user.wait_for(each, "running")
    assert engine_client.containers.get("trailer-steady").attrs["State"]["StartedAt"] == started


def test_an_engine_that_was_away_is_told_and_heals(
    engine_factory: Callable[[], PrivateEngine],
    trailer_factory: Callable[..., RunningTrailer],
) -> None:
    engine = engine_factory()
    user = User(trailer_factory(engine.url))
    workspace = user.running("survivor")
    host_id = user.online_host()["id"]
    user.patch(f"/hosts/{host_id}/", {"heartbeat_interval": 1, "reconcile_interval": 1})
    eventually(
        lambda: all(
            any(point["cpu_percent"] is not None for point in user.get(path)["results"])
            for path in (f"/hosts/{host_id}/metrics/", f"/workspaces/{workspace['id']}/metrics/")
        ),
        30,
        "no samples of the host and its workspace",
    )
    engine.stop()
    eventually(
        lambda: "engine" in user.get(f"/hosts/{host_id}/")["message"].lower(),
        40,
        "the host does not say that its engine is away",
    )
    assert user.get(f"/hosts/{host_id}/")["status"] == "online"
    engine.start()
    eventually(lambda: user.get(f"/hosts/{host_id}/")["message"] == "", 60, "still complaining")
    user.wait_for(workspace, "running", timeout=60)


def test_an_idle_trailer_makes_no_engine_call_and_no_needless_write(
    proxy: DockerApiProxy, trailer_factory: Callable[..., RunningTrailer]
) -> None:
    user = User(trailer_factory(f"unix://{proxy.socket}"))
    workspace = user.running("quiet")
    host = user.online_host()
    user.patch(f"/hosts/{host['id']}/", {"reconcile_interval": 1, "heartbeat_interval": 3600})
    user.wait_for(workspace, "running")

    def settled() -> bool:
        before = len(proxy.calls)
        always(lambda: True, 2.5, "")
        return len(proxy.calls) == before

    eventually(settled, 30, "the agent does not come to rest")
    proxy.forget_calls()
    seen = user.get(f"/workspaces/{workspace['id']}/")
    always(lambda: not proxy.calls, 8, "an idle agent called the engine", interval=0.2)
    assert user.get(f"/workspaces/{workspace['id']}/")["observed_at"] == seen["observed_at"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_health_addresses_answer(running_trailer: RunningTrailer, path: str) -> None:
    assert (
        running_trailer.session.get(f"{running_trailer.url}{path}", timeout=5).status_code == 200
    )
