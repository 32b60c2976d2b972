"""The engine's JSON and ours: odd answers of real engines, and requests as they go out."""

import io
import tarfile
from typing import Any

from agent.engine_requests import BuildRequest, ContainerRequest, NetworkRequest
from agent.observed import ObservedContainer
from agent.protocol.spec import GpuSpec, HealthCheckSpec, PortSpec
from agent.runtime import docker_parse as parse
from agent.runtime.docker_output import build_output, pull_output
from agent.runtime.docker_requests import build_context, container_config, network_config

INSPECTED = {
    "Id": "c1",
    "Name": "/trailer-web",
    "Image": "sha256:1",
    "RestartCount": 2,
    "State": {"Status": "running", "StartedAt": "2026-11-16T04:00:00.5Z", "ExitCode": 0},
    "Config": {"Labels": {"a": "b"}},
    "HostConfig": {"NanoCpus": 5, "Memory": 6},
    "NetworkSettings": {"Networks": {"lan": {"NetworkID": "n1", "Aliases": ["web", "c1"]}}},
}


def inspected(**state: object) -> ObservedContainer:
    raw = {**INSPECTED, "State": {"Status": "running", **state}}
    return parse.inspected_container(raw, {"lan": "n1"})


def test_an_inspection_keeps_all_that_matters() -> None:
    seen = parse.inspected_container(INSPECTED, {"lan": "n1"})
    assert (seen.name, seen.state, seen.restart_count) == ("trailer-web", "running", 2)
    assert (seen.nano_cpus, seen.memory_bytes, seen.labels) == (5, 6, {"a": "b"})
    assert seen.attachments[0].network_id == "n1"
    assert seen.attachments[0].aliases == ("c1", "web")


def test_a_port_is_on_ipv4_alone_where_the_engine_bound_nothing_else() -> None:
    ports = {
        "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}],
        "81/tcp": [{"HostIp": "0.0.0.0", "HostPort": "1"}, {"HostIp": "::", "HostPort": "1"}],
        "82/udp": [{"HostIp": "127.0.0.1", "HostPort": "2"}],
        "83/tcp": None,
    }
    raw = {**INSPECTED, "NetworkSettings": {"Networks": {}, "Ports": ports}}
    assert parse.inspected_container(raw, {}).ipv4_only_ports == {(80, "tcp")}


def test_mounts_are_all_that_another_container_could_hold_too() -> None:
    """Also what the engine made because the image has a VOLUME, though no other container gets
    that; not what is in memory only."""
    mounts = [
        {"Type": "volume", "Name": "data", "Source": "/e/data", "Destination": "/d", "RW": True},
        {"Type": "volume", "Name": "0" * 64, "Destination": "/auto", "RW": True},
        {"Type": "bind", "Source": "/srv", "Destination": "/srv", "RW": False},
        {"Type": "bind", "Source": "/odd", "Destination": "/odd"},
        {"Type": "tmpfs", "Source": "", "Destination": "/run", "RW": True},
    ]
    seen = parse.inspected_container({**INSPECTED, "Mounts": mounts}, {})
    assert [(m.target, m.source, m.read_only) for m in seen.mounts] == [
        ("/auto", "0" * 64, False),
        ("/d", "data", False),
        ("/odd", "/odd", False),
        ("/srv", "/srv", True),
    ]
    assert seen.writable_targets == ("/d", "/odd")
    assert parse.inspected_container({**INSPECTED, "Mounts": None}, {}).mounts == ()


def test_flags_win_over_the_status_word() -> None:
    assert inspected(Paused=True).state == "paused"
    assert inspected(Restarting=True).state == "restarting"
    assert inspected(Dead=True).state == "dead"


def test_a_container_that_never_ran_knows_its_network_by_name_or_id() -> None:
    for key in ("lan", "n1"):
        raw = {**INSPECTED, "NetworkSettings": {"Networks": {key: {"NetworkID": ""}}}}
        (place,) = parse.inspected_container(raw, {"lan": "n1"}).attachments
        assert (place.network_id, place.network_name) == ("n1", "lan")


def test_missing_and_null_parts_are_no_errors() -> None:
    bare = parse.inspected_container({"Id": "c", "State": None, "NetworkSettings": None}, {})
    assert (bare.state, bare.attachments, bare.health) == ("", (), "")
    assert inspected(StartedAt="0001-01-01T00:00:00Z").started_at == ""
    assert inspected(Health={"Status": "none"}).health == ""
    listed = parse.listed_container({"Id": "c", "Names": None, "Labels": None})
    assert (listed.name, listed.inspected) == ("", False)
    assert parse.listed_image({"Id": "i", "RepoTags": None}).tags == ()
    assert parse.listed_image({"Id": "i", "RepoTags": ["<none>:<none>"]}).tags == ()


def test_the_last_health_output_is_kept() -> None:
    health = {"Status": "unhealthy", "Log": [{"Output": "old"}, {"Output": " refused \n"}]}
    seen = inspected(Health=health)
    assert (seen.health, seen.health_output) == ("unhealthy", "refused")


def test_the_fingerprint_moves_with_health_but_not_with_uptime() -> None:
    def mark(status: str) -> object:
        return parse.list_fingerprint({"Names": ["/a"], "State": "running", "Status": status})

    assert mark("Up 1 second (healthy)") == mark("Up 2 hours (healthy)")
    assert mark("Up 1 second (healthy)") != mark("Up 1 second (unhealthy)")


def test_an_event_names_its_workspace_and_its_plain_action() -> None:
    event = parse.event(
        {
            "Type": "container",
            "Action": "health_status: healthy",
            "Actor": {"ID": "c1", "Attributes": {"trailer.workspace": "w"}},
        }
    )
    assert (event.action, event.container_id, event.workspace_id) == ("health_status", "c1", "w")
    joined = parse.event(
        {
            "Type": "network",
            "Action": "disconnect",
            "Actor": {"ID": "n1", "Attributes": {"container": "c1"}},
        }
    )
    assert (joined.id, joined.container_id) == ("n1", "c1")


def test_ports_devices_and_checks_are_spelled_as_the_engine_wants() -> None:
    config = container_config(
        ContainerRequest(
            name="trailer-web",
            image="i",
            hostname="w" * 70,
            ports=(
                PortSpec(container_port=80, host_port=8080, host_ip="127.0.0.1"),
                PortSpec(container_port=80),
            ),
            gpus=GpuSpec(device_ids=("GPU-1",)),
            nested_virtualization=True,
            health_check=HealthCheckSpec(test=("true",), interval=0.5, timeout=1, retries=2),
        ),
        network_id="n1",
        alias="web",
    )
    host = config["HostConfig"]
    assert host["PortBindings"]["80/tcp"] == [
        {"HostIp": "127.0.0.1", "HostPort": "8080"},
        {"HostIp": "", "HostPort": ""},
    ]
    assert host["DeviceRequests"][0]["DeviceIDs"] == ["GPU-1"]
    assert host["Devices"][0]["PathOnHost"] == "/dev/kvm"
    assert config["Healthcheck"]["Test"] == ["CMD", "true"]
    assert config["Healthcheck"]["Interval"] == 500_000_000
    assert len(config["Hostname"]) == 63
    assert config["NetworkingConfig"]["EndpointsConfig"] == {"n1": {"Aliases": ["web"]}}
    assert "Cmd" not in config


def test_a_machine_in_a_container_gets_what_the_host_has_for_it() -> None:
    request = ContainerRequest(name="c", image="i", hostname="h", nested_virtualization=True)
    plain = container_config(request, network_id="", alias="")["HostConfig"]
    assert [device["PathInContainer"] for device in plain["Devices"]] == ["/dev/kvm"]
    assert "CapAdd" not in plain
    tun = ("/dev/net/tun",)
    whole = container_config(request, network_id="", alias="", companions=tun)["HostConfig"]
    assert [device["PathOnHost"] for device in whole["Devices"]] == ["/dev/kvm", "/dev/net/tun"]
    assert whole["CapAdd"] == ["NET_ADMIN"]
    other = ContainerRequest(name="c", image="i", hostname="h")
    assert "Devices" not in container_config(other, network_id="", alias="")["HostConfig"]


def test_a_fork_bomb_ends_at_its_container_and_the_platforms_own_work_does_not() -> None:
    request = ContainerRequest(name="c", image="i", hostname="h")
    assert container_config(request, network_id="", alias="")["HostConfig"]["PidsLimit"] == 4096
    driver = ContainerRequest(name="c", image="i", hostname="h", privileged=True)
    assert "PidsLimit" not in container_config(driver, network_id="", alias="")["HostConfig"]


def test_a_network_pool_is_sent_only_when_asked_for() -> None:
    assert "IPAM" not in network_config(NetworkRequest(name="n"))
    config = network_config(
        NetworkRequest(name="n", driver="macvlan", parent_interface="eth0", subnet="10.0.0.0/24")
    )
    assert config["IPAM"]["Config"] == [{"Subnet": "10.0.0.0/24"}]
    assert config["Options"] == {"parent": "eth0"}


def test_a_build_context_holds_the_files_and_a_dockerfile_nobody_can_shadow() -> None:
    request = BuildRequest(
        ref="r", dockerfile="FROM x", files=(("Dockerfile", "theirs"), ("/run.sh", "#!/bin/sh"))
    )
    with tarfile.open(fileobj=io.BytesIO(build_context(request).read())) as archive:
        modes = {entry.name: entry.mode for entry in archive.getmembers()}
    assert modes == {"Dockerfile": 0o644, "run.sh": 0o755, ".trailer.Dockerfile": 0o644}


def test_a_pull_tells_each_state_once_and_its_progress_only_rises() -> None:
    raw: list[dict[str, Any]] = [
        {"status": "Pulling from a", "id": "1"},
        {"status": "Pulling fs layer", "id": "l1"},
        {"status": "Downloading", "id": "l1", "progressDetail": {"current": 5, "total": 10}},
        {"status": "Downloading", "id": "l1", "progressDetail": {"current": 9, "total": 10}},
        {"status": "Pull complete", "id": "l1"},
        {"status": "Status: done"},
    ]
    outputs = list(pull_output(iter(raw)))
    text = "".join(output.text for output in outputs)
    assert text.count("Downloading") == 1
    percents = [output.progress for output in outputs if output.progress is not None]
    assert percents == sorted(percents)


def test_an_error_line_ends_the_output() -> None:
    raw = [{"stream": "Step 2/4 : RUN x\n"}, {"error": "code 1"}, {"stream": "never"}]
    outputs = list(build_output(iter(raw)))
    assert [(o.progress, o.error) for o in outputs] == [(25, ""), (None, "code 1")]
