"""The table of what a change does to a workspace, row by row, on a real engine.

Every row says whether the container stays the same, and which ledger rows the change writes. Rows
of one kind are deployed and edited together, each on a workspace of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.report import CycleReport
from agent.protocol.spec import GpuSpec, HealthCheckSpec, MountSpec, PortSpec, UrlSpec
from tests.engine.agent_inside import AgentInside, silent
from tests.engine.desired_host import DesiredHost
from tests.ground.images import HTTPD, RUN_UNTIL_STOPPED
from tests.ground.inside import file_in
from tests.ground.proxy import DockerApiProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker
    from docker.models.containers import Container

    from agent.protocol.report import WorkspaceEvent, WorkspaceStatus
    from tests.ground.engine import PrivateEngine

MIB = 1024 * 1024
DATA = MountSpec(target="/data", source="trailer-data", volume_id="v-data")
CACHE = MountSpec(target="/cache", source="trailer-cache", volume_id="v-cache")
READ_ONLY = MountSpec(target="/cache", source="trailer-cache", volume_id="v-cache", read_only=True)
# By the engine's default the first check is half a minute away.
CHECK = HealthCheckSpec(test=("CMD", "true"), interval=3.0)

# Row -> (spec before, spec after, the field that the ledger must name).
REPLACING: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "image-reference": ({}, {"image_ref": HTTPD, "image_id": ""}, "image"),
    "cpus": ({"cpus": 0.5}, {"cpus": 0.25}, "cpus"),
    "memory": ({"memory_bytes": 64 * MIB}, {"memory_bytes": 48 * MIB}, "memory_bytes"),
    "memory-limit-lifted": ({"memory_bytes": 64 * MIB}, {"memory_bytes": None}, "memory_bytes"),
    "shm": ({}, {"shm_bytes": 32 * MIB}, "shm_bytes"),
    "env": ({}, {"env": {"COLOUR": "red"}}, "env"),
    "secret": (
        {"secret_env": {"KEY": "hunter2"}},
        {"secret_env": {"KEY": "hunter3"}},
        "secret_env",
    ),
    "ports": ({}, {"ports": (PortSpec(container_port=80),)}, "ports"),
    "mounts": ({}, {"mounts": (DATA, CACHE)}, "mounts"),
    "read-only-mount": ({"mounts": (DATA, CACHE)}, {"mounts": (DATA, READ_ONLY)}, "mounts"),
    "nested-virtualisation": ({}, {"nested_virtualization": True}, "nested_virtualization"),
    "command": ({}, {"command": (*RUN_UNTIL_STOPPED, "other")}, "command"),
    "health-check": ({}, {"health_check": CHECK}, "health_check"),
    "label": ({}, {"labels": {"team": "blue"}}, "labels"),
    "redeploy": ({}, {"generation": 1}, "redeploy"),
}
FULL: dict[str, Any] = {
    "env": {"A": "1", "B": "2"},
    "secret_env": {"S": "1", "T": "2"},
    "labels": {"a": "1", "b": "2"},
    "ports": (PortSpec(container_port=80), PortSpec(container_port=81, protocol="udp")),
    "mounts": (DATA, CACHE),
    "network_ids": ("n-lan", "n-dmz"),
    "cpus": 0.5,
    "memory_bytes": 64 * MIB,
    "health_check": CHECK,
    "urls": (
        UrlSpec(subdomain="a", domain="example.test", port=80),
        UrlSpec(subdomain="b", domain="example.test", port=80),
    ),
}
LISTS = ("env", "secret_env", "labels", "ports", "mounts", "network_ids", "urls")
SAME_MEANING: dict[str, dict[str, Any]] = {
    **{
        f"order-of-{field}": {
            field: dict(reversed(FULL[field].items()))
            if isinstance(FULL[field], dict)
            else FULL[field][::-1]
        }
        for field in LISTS
    },
    "said-twice": {"network_ids": ("n-dmz", "n-lan", "n-dmz"), "mounts": (CACHE, DATA, CACHE)},
    "other-units": {"memory_bytes": 65536 * 1024, "cpus": 0.5000001},
    "defaults-spelled-out": {
        "gpus": GpuSpec(count=0, device_ids=()),
        "nested_virtualization": False,
        "ports": (
            PortSpec(container_port=80, protocol="tcp", host_port=None, host_ip=""),
            PortSpec(container_port=81, protocol="udp", host_port=None, host_ip=""),
        ),
        "health_check": HealthCheckSpec(
            test=("CMD", "true"), interval=3, timeout=30.0, retries=3, start_period=0
        ),
    },
}


@dataclass
class Outcome:
    """One workspace before and after its edit, and what was said about it in between."""

    old: dict[str, Any]
    new: dict[str, Any]
    kept: bytes
    ledger: list[WorkspaceEvent]
    status: WorkspaceStatus
    revision: int


@pytest.fixture(scope="module")
def bench(
    engine: PrivateEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DesiredHost, AgentInside, DockerApiProxy, docker.DockerClient]]:
    """One host for all rows of this file."""
    engine.clean()
    proxy = DockerApiProxy(engine.socket, engine.folder / "rows.sock").start()
    host, client = DesiredHost(), engine.client()
    agent = AgentInside(host, proxy.url, tmp_path_factory.mktemp("rows")).start()
    yield host, agent, proxy, client
    agent.stop()
    host.close()
    client.close()
    proxy.stop()
    engine.clean()


def container(client: docker.DockerClient, name: str = "web") -> Container:
    return client.containers.get(f"trailer-{name}")


def read(client: docker.DockerClient, row: str) -> bytes:
    """What the row's workspace kept in its volume."""
    return file_in(container(client, row), f"/data/{row}")


def deploy(host: DesiredHost, agent: AgentInside, **workspaces: dict[str, Any]) -> None:
    """Workspaces with a volume, on one network, and whatever their rows need."""
    with host.one_edit():
        for name in ("lan", "dmz"):
            host.network(name)
        for name in ("data", "cache"):
            host.volume(name)
        for name, fields in workspaces.items():
            usual = {"network_ids": ("n-lan",), "mounts": (DATA,), "env": {"COLOUR": "blue"}}
            host.workspace(name, **{**usual, **fields})
    agent.settle(120)


# --- rows that replace -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def replaced(
    bench: tuple[DesiredHost, AgentInside, DockerApiProxy, docker.DockerClient],
) -> dict[str, Outcome]:
    host, agent, proxy, client = bench
    deploy(host, agent, **{row: before for row, (before, _, _) in REPLACING.items()})
    old, rows = {}, {}
    for row in REPLACING:
        found = container(client, row)
        found.exec_run(["sh", "-c", f"echo kept > /data/{row}"])
        old[row], rows[row] = found.attrs, len(host.events(row))
    with host.one_edit():
        for row, (_, after, _) in REPLACING.items():
            host.edit(row, **after)
    agent.settle(120)
    silent(agent, proxy)
    names = sorted(str(found.name) for found in client.containers.list(all=True))
    assert names == sorted(f"trailer-{row}" for row in REPLACING)
    return {
        row: Outcome(
            old=old[row],
            new=container(client, row).attrs,
            kept=read(client, row),
            ledger=host.events(row)[rows[row] :],
            status=host.status(row),
            revision=host.workspaces[row].revision,
        )
        for row in REPLACING
    }


@pytest.mark.parametrize("row", REPLACING)
def test_a_replacing_change_makes_a_new_container_with_the_same_name_identity_and_mounts(
    row: str, replaced: dict[str, Outcome]
) -> None:
    seen, field = replaced[row], REPLACING[row][2]
    assert seen.new["Id"] != seen.old["Id"]
    assert seen.new["State"]["Status"] == "running"
    assert seen.kept == b"kept\n"
    assert seen.new["Name"] == seen.old["Name"]
    label = "trailer.workspace"
    assert seen.new["Config"]["Labels"][label] == seen.old["Config"]["Labels"][label]
    assert list(seen.new["NetworkSettings"]["Networks"]) == ["trailer-lan"]
    cause = "redeploy requested" if field == "redeploy" else f"changed: {field}"
    assert [(entry.event, entry.cause) for entry in seen.ledger] == [("replace", cause)]
    assert [(c.field, c.effect) for c in seen.ledger[0].changes] == [(field, "replace")]
    assert seen.ledger[0].revision == seen.revision
    told = (seen.status.container_id, seen.status.revision)
    assert told == (seen.new["Id"], seen.revision)


def test_a_changed_secret_is_masked_wherever_the_agent_speaks(
    replaced: dict[str, Outcome],
    bench: tuple[DesiredHost, AgentInside, DockerApiProxy, docker.DockerClient],
) -> None:
    seen = replaced["secret"]
    assert "KEY=hunter3" in seen.new["Config"]["Env"]
    change = seen.ledger[0].changes[0]
    assert (change.old, change.new) == ({"KEY": "•••"}, {"KEY": "•••"})
    assert "hunter" not in repr(bench[0].server.book.items)
    assert "hunter" not in repr(seen.new["Config"]["Labels"])


# --- rows that change nothing --------------------------------------------------------------------


@pytest.fixture(scope="module")
def respelled(
    bench: tuple[DesiredHost, AgentInside, DockerApiProxy, docker.DockerClient],
    replaced: dict[str, Outcome],
) -> tuple[dict[str, Outcome], list[str], int]:
    """Outcomes, the calls that changed something, and how many cycles had something to tell."""
    host, agent, proxy, client = bench
    with host.one_edit():
        for row in REPLACING:
            host.delete_workspace(row)
    deploy(host, agent, **dict.fromkeys(SAME_MEANING, FULL))
    agent.look_again()
    old = {row: container(client, row).attrs for row in SAME_MEANING}
    rows = {row: len(host.events(row)) for row in SAME_MEANING}
    cycles = len(host.server.all(CycleReport))
    proxy.forget_calls()
    with host.one_edit():
        for row, fields in SAME_MEANING.items():
            host.edit(row, **fields)
    agent.settle()
    agent.look_again()
    outcomes = {
        row: Outcome(
            old=old[row],
            new=container(client, row).attrs,
            kept=b"",
            ledger=host.events(row)[rows[row] :],
            status=host.status(row),
            revision=host.workspaces[row].revision,
        )
        for row in SAME_MEANING
    }
    calls = [f"{call.method} {call.path}" for call in proxy.mutating_calls]
    return outcomes, calls, len(host.server.all(CycleReport)) - cycles


@pytest.mark.parametrize("row", SAME_MEANING)
def test_another_spelling_of_the_same_spec_changes_nothing(
    row: str, respelled: tuple[dict[str, Outcome], list[str], int]
) -> None:
    outcomes, calls, _ = respelled
    seen = outcomes[row]
    assert seen.ledger == []
    assert seen.new["Id"] == seen.old["Id"]
    assert seen.new["State"] == {**seen.old["State"], "Health": seen.new["State"]["Health"]}
    assert [call for call in calls if seen.new["Id"] in call] == []
    assert seen.status.revision == seen.revision, "the server waits for its newest revision"


def test_a_document_that_only_reads_differently_makes_no_change_and_no_cycle_report(
    respelled: tuple[dict[str, Outcome], list[str], int],
) -> None:
    _, calls, cycles = respelled
    assert calls == []
    assert cycles == 0
