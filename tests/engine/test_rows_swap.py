"""Replacing a serving container: without a failed request, never for a worse one, and resumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.protocol import naming
from agent.protocol.spec import SPEC_FORMAT, HealthCheckSpec, PortSpec
from tests.engine.agent_inside import AgentInside, silent
from tests.ground.images import BUSYBOX, HTTPD, HTTPD_COMMAND, HTTPD_HEALTH_COMMAND
from tests.ground.poller import poller_command
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

    from tests.engine.desired_host import DesiredHost
    from tests.ground.proxy import DockerApiProxy

CHECK = HealthCheckSpec(test=("CMD", *HTTPD_HEALTH_COMMAND), interval=0.4, timeout=5.0, retries=2)
# Stops listening when it is told to stop, but finishes what it began, as servers do.
GRACEFUL = (
    "sh",
    "-c",
    "httpd -f -p 80 -h /www & trap 'kill $!; sleep 0.3; exit 0' TERM; wait",
)


def container(client: docker.DockerClient, name: str = "web") -> Container:
    return client.containers.get(f"trailer-{name}")


def names(client: docker.DockerClient) -> list[str]:
    return sorted(
        str(found.name) for found in client.containers.list(all=True, ignore_removed=True)
    )


def serve(host: DesiredHost, agent: AgentInside, **fields: Any) -> None:
    """A web server with a health check on a network of its own."""
    with host.one_edit():
        host.network("lan")
        host.image("httpd", ref=HTTPD)
        given = {"network_ids": ("n-lan",), "command": GRACEFUL, **fields}
        host.workspace("web", image="httpd", health_check=CHECK, startup_timeout=10.0, **given)
    agent.settle()
    eventually(lambda: host.status("web").status == "running", 20, "it never became healthy")


def poller(client: docker.DockerClient) -> Container:
    """A foreign container that asks for the page by the workspace's name, all the time."""
    made: Container = client.containers.run(
        BUSYBOX, poller_command(), name="poller", network="trailer-lan", detach=True, init=True
    )
    eventually(lambda: answers(made).count("ok") > 5, 20, "the page was never served")
    return made


def answers(made: Container) -> list[str]:
    return [line[:120] for line in made.logs().decode().splitlines()]


def test_a_service_with_a_health_check_is_replaced_without_a_failed_request(
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    serve(host, agent)
    watching = poller(engine_client)
    old, rows = container(engine_client), len(host.events("web"))
    for colour in ("red", "green", "blue"):
        host.edit("web", env={"COLOUR": colour})
        agent.settle()
    seen = len(answers(watching))
    eventually(lambda: len(answers(watching)) > seen + 5, 10, "the poller stopped")
    failures = [line for line in answers(watching) if line != "ok"]
    assert failures == [], f"{len(failures)} of {len(answers(watching))} requests failed"
    assert container(engine_client).id != old.id
    assert names(engine_client) == ["poller", "trailer-web"]
    ledger = host.events("web")[rows:]
    assert [(entry.event, entry.cause) for entry in ledger] == [("replace", "changed: env")] * 3
    assert host.status("web").health == "healthy"
    watching.remove(force=True)
    silent(agent, proxy)


def test_the_old_and_the_new_container_never_both_serve_a_fixed_host_port(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    """Two containers cannot hold one port: the new one starts only after the old one is gone."""
    serve(host, agent, ports=(PortSpec(container_port=80, host_port=18080),))
    old = container(engine_client)
    host.edit("web", env={"COLOUR": "red"})
    agent.settle()
    new = container(engine_client)
    assert new.id != old.id
    assert new.status == "running"
    assert names(engine_client) == ["trailer-web"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"command": ("sh", "-c", "echo no page today; sleep 3600")}, "Connection refused"),
        ({"command": ("sh", "-c", "echo cannot start; exit 7")}, "cannot start"),
    ],
    ids=["unhealthy", "ends"],
)
def test_a_replacement_that_does_not_come_up_leaves_the_old_one_serving(
    broken: dict[str, Any],
    said: str,
    host: DesiredHost,
    agent: AgentInside,
    engine_client: docker.DockerClient,
) -> None:
    serve(host, agent)
    watching = poller(engine_client)
    old, rows = container(engine_client), len(host.events("web"))
    revision = host.edit("web", **broken).revision
    eventually(lambda: host.status("web").status == "error", 30, "no error was reported")
    eventually(lambda: names(engine_client) == ["poller", "trailer-web"], 10, "-next stays")
    now = container(engine_client)
    assert (now.id, now.attrs["State"]["Pid"]) == (old.id, old.attrs["State"]["Pid"])
    status = host.status("web")
    assert said in status.message
    assert "The old one keeps running." in status.message
    assert status.revision == revision
    assert "Last output:" in status.message, status.message
    told = {entry.event for entry in host.events("web")[rows:]}
    # The ends of the new container are told, too, but nothing was done to the old one.
    assert told <= {"error", "crashed"}
    assert [line for line in answers(watching) if line != "ok"] == []

    host.edit("web", command=GRACEFUL, env={"COLOUR": "red"})
    agent.settle()
    eventually(lambda: host.status("web").status == "running", 20, "a repair was not deployed")
    assert container(engine_client).id != old.id


def test_a_replacement_that_is_never_healthy_in_time_gives_way(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    serve(host, agent)
    old = container(engine_client)
    slow = HealthCheckSpec(test=("CMD", "false"), interval=0.2, retries=1000, timeout=1.0)
    host.edit("web", health_check=slow, startup_timeout=2.0)
    eventually(lambda: host.status("web").status == "error", 30, "no error was reported")
    assert "not healthy within 2 seconds" in host.status("web").message
    eventually(lambda: names(engine_client) == ["trailer-web"], 10, "-next stays")
    assert container(engine_client).id == old.id


@pytest.mark.parametrize("state", ["created", "running"])
def test_a_left_over_replacement_is_removed_and_the_deploy_starts_again(
    state: str,
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    """As a crash leaves it: `-next` is there, made from an older wish, and nobody owns it."""
    serve(host, agent)
    old = container(engine_client)
    agent.stop()
    labels = dict(old.labels)
    spec = json.loads(labels[naming.LABEL_SPEC])
    labels[naming.LABEL_SPEC] = json.dumps({**spec, "env": {"COLOUR": "half-way"}})
    left = engine_client.containers.create(
        HTTPD, HTTPD_COMMAND, name="trailer-web-next", labels=labels, network="trailer-lan"
    )
    if state == "running":
        left.start()
    host.edit("web", env={"COLOUR": "red"})
    agent.restart()
    agent.settle()
    eventually(lambda: names(engine_client) == ["trailer-web"], 20, "-next stays")
    agent.settle()
    now = container(engine_client)
    assert now.id not in (old.id, left.id)
    assert "COLOUR=red" in now.attrs["Config"]["Env"]
    assert host.events("web")[-1].event == "replace"
    silent(agent, proxy)


def relabel(client: docker.DockerClient, host: DesiredHost, **labels: str | None) -> Container:
    """The workspace's container as another version of the agent would have made it."""
    old = container(client)
    kept = {**old.labels, **labels}
    wanted = {key: value for key, value in kept.items() if value is not None}
    old.remove(force=True)
    made = client.containers.create(
        HTTPD,
        HTTPD_COMMAND,
        name="trailer-web",
        labels=wanted,
        networking_config={"trailer-lan": client.api.create_endpoint_config(aliases=["web"])},
        network="trailer-lan",
        healthcheck=old.attrs["Config"]["Healthcheck"],
        restart_policy={"Name": "unless-stopped"},  # type: ignore[arg-type]
    )
    made.start()
    return made


@pytest.mark.parametrize("version", ["older", "extra fields", "missing fields", "newer"])
def test_an_agent_upgrade_recreates_nothing(
    version: str,
    host: DesiredHost,
    agent: AgentInside,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
) -> None:
    serve(host, agent)
    agent.stop()
    spec = json.loads(container(engine_client).labels[naming.LABEL_SPEC])
    unknown = {**spec, "from_the_future": {"x": [1, 2]}}
    known = {key: value for key, value in spec.items() if key not in {"generation", "urls"}}
    changed: dict[str, dict[str, str | None]] = {
        "older": {naming.LABEL_SPEC_FORMAT: str(SPEC_FORMAT - 1)},
        "extra fields": {naming.LABEL_SPEC: json.dumps(unknown), "trailer.wherever": "x"},
        "missing fields": {naming.LABEL_SPEC: json.dumps(known)},
        "newer": {
            naming.LABEL_SPEC_FORMAT: str(SPEC_FORMAT + 1),
            naming.LABEL_SPEC: json.dumps({"all": "different"}),
        },
    }
    made = relabel(engine_client, host, **changed[version])
    made.reload()
    rows = len(host.events("web"))
    proxy.forget_calls()
    agent.restart()
    agent.settle()
    agent.look_again()
    assert [str(call) for call in proxy.mutating_calls] == []
    now = container(engine_client)
    assert now.attrs["State"]["StartedAt"] == made.attrs["State"]["StartedAt"]
    assert host.events("web")[rows:] == []
    eventually(lambda: host.status("web").status == "running", 20, "it is not seen as running")
    assert host.status("web").container_id == made.id


def test_a_field_that_came_with_an_upgrade_replaces_only_once_it_is_edited(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    serve(host, agent)
    agent.stop()
    spec = json.loads(container(engine_client).labels[naming.LABEL_SPEC])
    del spec["shm_bytes"]
    made = relabel(engine_client, host, **{naming.LABEL_SPEC: json.dumps(spec)})
    known = host.workspaces["web"]
    with_default = msgspec.structs.replace(known.spec, shm_bytes=64 * 1024 * 1024)
    host.workspaces["web"] = msgspec.structs.replace(known, spec=with_default)
    host.publish()
    agent.restart()
    agent.settle()
    assert container(engine_client).id == made.id
    host.edit("web", shm_bytes=32 * 1024 * 1024)
    agent.settle()
    assert container(engine_client).id != made.id
    assert [change.field for change in host.events("web")[-1].changes] == ["shm_bytes"]
