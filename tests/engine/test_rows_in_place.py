"""Rows of the table that keep the container, and replaces that need a host of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.protocol.spec import GpuSpec, UrlSpec
from agent.protocol.state import RouterSettings
from tests.engine.agent_inside import AgentInside, silent
from tests.ground.images import BUSYBOX
from tests.ground.inside import file_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker
    from docker.models.containers import Container

    from tests.engine.desired_host import DesiredHost
    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy


def container(client: docker.DockerClient, name: str = "web") -> Container:
    return client.containers.get(f"trailer-{name}")


def written(host: DesiredHost, before: int, name: str = "web") -> list[tuple[str, str, list[str]]]:
    """Ledger rows beyond the first `before`: event, cause, fields."""
    return [
        (row.event, row.cause, [change.field for change in row.changes])
        for row in host.events(name)[before:]
    ]


def deploy(host: DesiredHost, agent: AgentInside, **fields: Any) -> None:
    with host.one_edit():
        host.network("lan")
        host.network("dmz")
        host.workspace("web", **{"network_ids": ("n-lan",), **fields})
    agent.settle()


def test_networks_are_attached_and_detached_without_a_new_container(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    old, rows = container(engine_client), len(host.events("web"))
    host.edit("web", network_ids=("n-lan", "n-dmz"))
    agent.settle()
    places = container(engine_client).attrs["NetworkSettings"]["Networks"]
    assert sorted(places) == ["trailer-dmz", "trailer-lan"]
    assert "web" in places["trailer-dmz"]["Aliases"]
    assert written(host, rows) == [("connect", "networks changed", ["networks"])]
    silent(agent, proxy)

    rows = len(host.events("web"))
    host.edit("web", network_ids=("n-dmz",))
    agent.settle()
    now = container(engine_client)
    assert list(now.attrs["NetworkSettings"]["Networks"]) == ["trailer-dmz"]
    assert written(host, rows) == [("disconnect", "networks changed", ["networks"])]
    assert (now.id, now.attrs["State"]["Pid"]) == (old.id, old.attrs["State"]["Pid"])
    silent(agent, proxy)


def test_a_rename_keeps_the_container_and_names_it_anew_on_its_networks(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    old, rows = container(engine_client), len(host.events("web"))
    host.edit("web", name="site")
    agent.settle()
    now = container(engine_client, "site")
    assert (now.id, now.attrs["State"]["Pid"]) == (old.id, old.attrs["State"]["Pid"])
    assert "site" in now.attrs["NetworkSettings"]["Networks"]["trailer-lan"]["Aliases"]
    assert written(host, rows) == [("rename", "name changed", ["name"])], "one edit, one row"
    change = host.events("web")[-1].changes[0]
    assert (change.old, change.new, change.effect) == ("web", "site", "in_place")
    silent(agent, proxy)


def test_stop_and_start_keep_the_container(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    old, rows = container(engine_client), len(host.events("web"))
    for state, engine_word in (("stopped", "exited"), ("running", "running")):
        host.edit("web", desired_state=state)
        agent.settle()
        now = container(engine_client)
        assert (now.id, now.status, host.status("web").status) == (old.id, engine_word, state)
        silent(agent, proxy)
    assert written(host, rows) == [
        ("stop", "stop requested", []),
        ("start", "start requested", []),
    ]


def test_a_changed_route_replaces_only_where_the_router_reads_container_labels(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    deploy(host, agent)
    old, rows = container(engine_client), len(host.events("web"))
    proxy.forget_calls()
    host.edit("web", urls=(UrlSpec(subdomain="a", domain="example.test", port=80),))
    agent.settle()
    assert proxy.mutating_calls == []
    assert written(host, rows) == []
    assert host.status("web").revision == 2

    host.settings(router=RouterSettings(mode="traefik-labels"))
    agent.settle()
    rows = len(host.events("web"))
    host.edit("web", urls=(UrlSpec(subdomain="b", domain="example.test", port=80),))
    agent.settle()
    assert container(engine_client).id != old.id
    assert written(host, rows) == [("replace", "changed: urls", ["urls"])]


def test_a_rebuilt_image_replaces_the_container_and_says_from_which_to_which(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    with host.one_edit():
        host.build("made", f"FROM {BUSYBOX}\nRUN echo one > /made\n")
        host.workspace("web", image="made")
    agent.settle()
    old, rows = container(engine_client), len(host.events("web"))
    first = host.server.build("b-made-1")
    assert first is not None
    host.edit("web", image_engine_id=first.engine_id)
    agent.settle()
    assert container(engine_client).id == old.id, "an image that became known replaces nothing"
    host.build("made", f"FROM {BUSYBOX}\nRUN echo two > /made\n", number=2)
    agent.settle()
    second = host.server.build("b-made-2")
    assert second is not None
    assert second.status == "finished"
    # The server learns the new id from the report and puts it into its next document.
    host.edit("web", image_engine_id=second.engine_id)
    agent.settle()
    new = container(engine_client)
    assert file_in(new, "/made") == b"two\n"
    assert written(host, rows) == [("replace", "changed: image", ["image"])]
    change = host.events("web")[-1].changes[0]
    assert (change.old, change.new) == (first.engine_id, second.engine_id)
    silent(agent, proxy)


def test_a_gpu_request_replaces_the_container_where_the_engine_knows_gpus(
    host: DesiredHost, engine_factory: Callable[..., PrivateEngine], tmp_path: Path
) -> None:
    """The engine offers GPUs once it finds NVIDIA's hook; this one does nothing."""
    hook = tmp_path / "bin" / "nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    engine = engine_factory(env={"PATH": f"{hook.parent}:/usr/sbin:/usr/bin:/sbin:/bin"})
    agent = AgentInside(host, engine.url, tmp_path / "state").start()
    client = engine.client()
    try:
        deploy(host, agent)
        old, rows = container(client), len(host.events("web"))
        host.edit("web", gpus=GpuSpec(count=1))
        agent.settle()
        new = container(client)
        assert new.id != old.id
        assert new.status == "running"
        assert new.attrs["HostConfig"]["DeviceRequests"][0]["Count"] == 1
        assert written(host, rows) == [("replace", "changed: gpus", ["gpus"])]
    finally:
        client.close()
        agent.stop()


def test_a_disabled_host_stops_its_workspaces_and_brings_back_only_what_should_run(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    deploy(host, agent)
    host.workspace("resting", desired_state="stopped")
    agent.settle()
    old, rows = container(engine_client), len(host.events("web"))
    host.settings(enabled=False)
    agent.settle()
    assert (container(engine_client).id, container(engine_client).status) == (old.id, "exited")
    assert host.status("web").message == "Host is disabled."
    host.settings(enabled=True)
    agent.settle()
    assert (container(engine_client).id, container(engine_client).status) == (old.id, "running")
    assert host.status("resting").status == "stopped"
    told = [(event, cause) for event, cause, _ in written(host, rows)]
    assert told == [("stop", "host is disabled"), ("start", "start requested")]
