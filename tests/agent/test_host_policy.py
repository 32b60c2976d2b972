"""A forged document against the host's own policy: refused by the agent, with a sentence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from agent.errors import ConfigError
from agent.host_policy import FILE_NAME, HostPolicy, load_policy
from agent.protocol.naming import volume_name
from agent.protocol.prerequisites import (
    DesiredPrerequisite,
    PrerequisiteMount,
    PrerequisiteSpec,
)
from agent.protocol.spec import GpuSpec, MountSpec, PortSpec, WorkspaceSpec
from agent.protocol.state import HostSettings, NvidiaSettings
from tests.agent.documents import IMAGE_REF, document, image, network, volume, workspace
from tests.agent.running import Launch, reaches
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent.runtime.fake import FakeRuntime
    from tests.agent.bench import Bench
    from tests.agent.fake_server import FakeServer

CLOSED = """
privileged = false
gpus = false
macvlan = false
bind_paths = ["/srv/shared"]
host_ports = ["8000-8099", "9443"]
agent_images = ["example.com/agent:*"]
"""
# Every field of a spec is either judged by the policy or cannot reach the host.
JUDGED = {"nested_virtualization", "gpus", "mounts", "ports", "labels"}
HARMLESS = {
    *("name", "image_ref", "image_id", "image_engine_id", "command", "env", "secret_env", "cpus"),
    *("memory_bytes", "shm_bytes", "network_ids", "urls", "health_check", "generation"),
}


def bind(source: str, **fields: Any) -> dict[str, Any]:
    return {"mounts": (MountSpec(target="/x", kind="bind", source=source, **fields),)}


FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "nested virtualisation": ({"nested_virtualization": True}, "nested_virtualization"),
    "GPUs": ({"gpus": GpuSpec(count=1)}, "gpus"),
    "a bind outside the allowed folders": (bind("/home/eva"), "/home/eva"),
    "a bind beside an allowed folder": (bind("/srv/shared-not"), "/srv/shared-not"),
    "a bind that climbs out": (bind("/srv/shared/../../home"), "neither"),
    "a bind with options": (bind("/srv/shared:/x:rw"), "colon"),
    "a port outside the range": (
        {"ports": (PortSpec(container_port=80, host_port=22),)},
        "publishing 22",
    ),
    "a port of the engine's choice": ({"ports": (PortSpec(container_port=80),)}, "choice"),
}
# Refused on every host, with or without a file.
ALWAYS: dict[str, tuple[dict[str, Any], str]] = {
    **{
        path: (bind(path), "hand out the host")
        for path in ("/", "/etc/cron.d", "/proc", "/sys/fs", "/dev", "/var", "/run/x")
    },
    "the engine's socket": (bind("/srv/docker.sock"), "hand out the host"),
    "the engine's data": (bind("/var/lib/docker/volumes"), "hand out the host"),
    "a relative bind": (bind("srv"), "absolute"),
    "a foreign volume": ({"mounts": (MountSpec(target="/x", source="pgdata"),)}, "pgdata"),
    "a path as a volume": ({"mounts": (MountSpec(target="/x", source="/etc"),)}, "/etc"),
    "tmpfs, npipe and the like": (
        {"mounts": (MountSpec(target="/x", kind="npipe", source="x"),)},
        "npipe",
    ),
    "our labels": ({"labels": {"trailer.workspace": "other"}}, "reserved"),
    "a router's labels": ({"labels": {"traefik.enable": "true"}}, "reserved"),
}


def refusals(policy: HostPolicy, **lists: Any) -> dict[str, str]:
    return policy.refusals(document(**lists), resolve=os.path.realpath)


@pytest.fixture
def closed(tmp_path: Path) -> HostPolicy:
    (tmp_path / FILE_NAME).write_text(CLOSED)
    return load_policy(tmp_path / FILE_NAME, required=True, kept_paths=(str(tmp_path),))


def test_every_field_of_a_spec_is_judged_or_harmless() -> None:
    assert set(WorkspaceSpec.__struct_fields__) == JUDGED | HARMLESS


@pytest.mark.parametrize("what", [*FORGED, *ALWAYS])
def test_a_forged_field_is_refused_with_a_sentence(what: str, closed: HostPolicy) -> None:
    fields, word = (FORGED | ALWAYS)[what]
    found = refusals(closed, workspaces=(workspace(**fields), workspace("good")))
    assert list(found) == ["workspace:w-web"]
    assert word in found["workspace:w-web"]
    assert found["workspace:w-web"].endswith(".")


@pytest.mark.parametrize("what", ALWAYS)
def test_without_a_file_what_hands_out_the_host_is_still_refused(what: str) -> None:
    fields, word = ALWAYS[what]
    assert word in refusals(HostPolicy(), workspaces=(workspace(**fields),))["workspace:w-web"]


@pytest.mark.parametrize("what", FORGED)
def test_without_a_file_the_server_decides_the_rest(what: str) -> None:
    fields, word = FORGED[what]
    found = refusals(HostPolicy(), workspaces=(workspace(**fields),))
    assert bool(found) == (word in ("neither", "colon"))


def test_what_the_policy_allows_passes(closed: HostPolicy) -> None:
    mounts = (
        MountSpec(target="/a", kind="bind", source="/srv/shared/eva"),
        MountSpec(target="/b", source=volume_name("data")),
    )
    ports = (
        PortSpec(container_port=80, host_port=8042),
        PortSpec(container_port=1, host_port=9443),
    )
    assert not refusals(closed, workspaces=(workspace(mounts=mounts, ports=ports),))


def test_a_bind_volume_and_a_macvlan_network_are_refused_where_they_stand(
    closed: HostPolicy,
) -> None:
    found = refusals(
        closed,
        volumes=(
            volume(kind="bind", source="/opt"),
            volume("ok", kind="bind", source="/srv/shared"),
        ),
        networks=(network(driver="macvlan"), network("plain")),
    )
    assert set(found) == {"volume:v-data", "network:n-lan"}


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (PrerequisiteSpec(privileged=True), "privileged container"),
        (PrerequisiteSpec(host_pid=True), "privileged container"),
        (PrerequisiteSpec(mounts=(PrerequisiteMount(target="/x", source="/"),)), "hand out"),
        (PrerequisiteSpec(ports=(PortSpec(container_port=80, host_port=80),)), "publishing 80"),
    ],
)
def test_a_container_of_the_platform_is_no_way_around(
    spec: PrerequisiteSpec, word: str, closed: HostPolicy, bench: Bench
) -> None:
    needed = DesiredPrerequisite(kind="router", image=IMAGE_REF, spec=spec)
    found = refusals(closed, prerequisites=(needed,))
    assert word in found["prerequisite:router"]
    assert not refusals(HostPolicy(), prerequisites=(needed,))
    assert refusals(HostPolicy(platform=False), prerequisites=(needed,))
    assert not bench.plan(document(prerequisites=(needed,)), refused=found).nodes


def test_a_link_does_not_lead_out_of_an_allowed_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/door").symlink_to("/etc")
    policy = HostPolicy(bind_paths=(str(tmp_path / "shared"),))
    found = refusals(policy, workspaces=(workspace(**bind(str(tmp_path / "shared/door/ssh"))),))
    assert "/etc/ssh may not be mounted" in found["workspace:w-web"]


def test_the_agents_own_folder_is_never_mounted(closed: HostPolicy, tmp_path: Path) -> None:
    policy = HostPolicy(kept_paths=(str(tmp_path / "agent"),))
    for source in (tmp_path, tmp_path / "agent", tmp_path / "agent/policy.toml"):
        assert refusals(policy, workspaces=(workspace(**bind(str(source))),))


def test_settings_that_need_the_host_are_turned_off(closed: HostPolicy) -> None:
    wanted = HostSettings(
        nvidia=NvidiaSettings(deploy_driver=True, deploy_toolkit=True),
        agent_image="evil:1",
        agent_order=7,
    )
    got = closed.settings(wanted)
    assert (got.nvidia.deploy_driver, got.nvidia.deploy_toolkit) == (False, False)
    assert (got.agent_image, got.agent_order) == ("", 0)
    assert closed.settings(HostSettings(agent_image="example.com/agent:2")).agent_image
    assert HostPolicy().settings(wanted) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("privileged = 1", "bind_paths = '/srv'", "bind_paths = ['srv']", "host_ports = ['x']"),
        *("unknown = true", "[", "kept_paths = []", "bind_paths = [1]"),
    ],
)
def test_a_file_that_cannot_be_followed_keeps_the_agent_from_starting(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ConfigError):
        load_policy(tmp_path / FILE_NAME, required=False, kept_paths=())


def test_a_named_file_that_is_missing_keeps_the_agent_from_starting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_policy(tmp_path / FILE_NAME, required=True, kept_paths=())
    assert load_policy(tmp_path / FILE_NAME, required=False, kept_paths=()) == HostPolicy()


def test_a_refused_workspace_is_an_error_while_the_others_run(
    launch: Launch, fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).write_text(CLOSED)
    forged = [
        workspace(f"bad-{n}", **fields) for n, (fields, _) in enumerate(FORGED.values(), start=1)
    ]
    fake_server.desire(images=(image(),), workspaces=(*forged, workspace("good")))
    launch()
    reaches(fake_server, "running", "w-good")
    for item, (_, word) in zip(forged, FORGED.values(), strict=True):
        reaches(fake_server, "error", item.id)
        status = fake_server.status(item.id)
        assert status is not None
        assert word in status.message
    assert [c.name for c in runtime.containers.values()] == ["trailer-good"]


def test_a_running_workspace_that_is_refused_later_may_still_stop(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(),)))
    refused = {"workspace:w-web": "No."}
    changed = workspace(revision=2, command=("sleep", "1"))
    assert not bench.plan(document(workspaces=(changed,)), refused=refused).nodes
    stopped = workspace(revision=3, desired_state="stopped")
    plan = bench.cycle(document(workspaces=(stopped,)), refused=refused)
    assert [type(node.step).__name__ for node in plan.nodes] == ["StopContainer"]


def test_the_policy_file_is_read_once_the_agent_starts(
    launch: Launch, fake_server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).write_text(CLOSED)
    fake_server.settings = HostSettings(agent_image="evil:1")
    fake_server.desire()
    running = launch()
    eventually(lambda: running.supervisor.parts.target.state() is not None, 10, "no document")
    assert running.supervisor.parts.target.settings().agent_image == ""
