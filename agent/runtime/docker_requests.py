"""The agent's requests to the engine's JSON; pure, the counterpart of `docker_parse`."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

from agent.engine_requests import RESTART_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.engine_requests import (
        BuildRequest,
        CommitRequest,
        ContainerRequest,
        NetworkRequest,
    )
    from agent.protocol.prerequisites import PrerequisiteMount
    from agent.protocol.spec import GpuSpec, HealthCheckSpec, MountSpec, PortSpec

NANOSECONDS = 1_000_000_000
KVM_DEVICE = "/dev/kvm"
# What virtual machines use beside it, for their network: given where the host has it.
KVM_COMPANIONS = ("/dev/vhost-net", "/dev/net/tun")
# Processes and threads of one container: those of the host are one supply for all of them.
PIDS_LIMIT = 4096


def container_config(
    request: ContainerRequest, *, network_id: str, alias: str, companions: tuple[str, ...] = ()
) -> dict[str, Any]:
    """`companions`: those of KVM_COMPANIONS that the host has."""
    config: dict[str, Any] = {
        "Image": request.image,
        "Hostname": request.hostname[:63],
        "Env": [f"{name}={value}" for name, value in request.env.items()],
        "Labels": dict(request.labels),
        "ExposedPorts": {f"{p.container_port}/{p.protocol}": {} for p in request.ports},
        "HostConfig": _host_config(request, network_id, companions),
        # Whoever attaches can type; a program that reads waits instead of seeing an end.
        "OpenStdin": True,
    }
    if request.command:
        config["Cmd"] = list(request.command)
    if request.entrypoint:
        config["Entrypoint"] = list(request.entrypoint)
    if request.health_check:
        config["Healthcheck"] = _health_check(request.health_check)
    if network_id:
        endpoint = {"Aliases": [alias]} if alias else {}
        config["NetworkingConfig"] = {"EndpointsConfig": {network_id: endpoint}}
    return config


def _host_config(
    request: ContainerRequest, network_id: str, companions: tuple[str, ...]
) -> dict[str, Any]:
    host: dict[str, Any] = {
        "RestartPolicy": {"Name": RESTART_POLICY},
        "PortBindings": _port_bindings(request.ports),
        "Mounts": [_mount(mount) for mount in request.mounts],
    }
    volumes = [m for m in request.platform_mounts if m.kind == "volume"]
    host["Mounts"] += [_platform_volume(mount) for mount in volumes]
    # Unlike a mount, the older form makes a folder that is not there yet.
    binds = [_bind(mount) for mount in request.platform_mounts if mount.kind != "volume"]
    if binds:
        host["Binds"] = binds
    if request.privileged:
        host["Privileged"] = True
    else:
        host["PidsLimit"] = PIDS_LIMIT
    if request.host_pid:
        host["PidMode"] = "host"
    if network_id:
        host["NetworkMode"] = network_id
    if request.nano_cpus:
        host["NanoCpus"] = request.nano_cpus
    if request.memory_bytes:
        host["Memory"] = request.memory_bytes
    if request.shm_bytes:
        host["ShmSize"] = request.shm_bytes
    if request.gpus:
        host["DeviceRequests"] = [_gpu_request(request.gpus)]
    if request.nested_virtualization:
        host["Devices"] = [
            {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"}
            for path in (KVM_DEVICE, *companions)
        ]
        if companions:
            # A machine's own network interface is made inside the container.
            host["CapAdd"] = ["NET_ADMIN"]
    return host


def _port_bindings(ports: tuple[PortSpec, ...]) -> dict[str, list[dict[str, str]]]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in ports:
        host_port = "" if port.host_port is None else str(port.host_port)
        entry = {"HostIp": port.host_ip, "HostPort": host_port}
        bindings.setdefault(f"{port.container_port}/{port.protocol}", []).append(entry)
    return bindings


def _mount(mount: MountSpec) -> dict[str, Any]:
    return {
        "Type": mount.kind,
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }


def _platform_volume(mount: PrerequisiteMount) -> dict[str, Any]:
    return {
        "Type": "volume",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }


def _bind(mount: PrerequisiteMount) -> str:
    options = ["ro" if mount.read_only else "rw", mount.propagation]
    return f"{mount.source}:{mount.target}:{','.join(option for option in options if option)}"


def _gpu_request(gpus: GpuSpec) -> dict[str, Any]:
    request: dict[str, Any] = {"Driver": "nvidia", "Capabilities": [["gpu"]]}
    if gpus.device_ids:
        request["DeviceIDs"] = list(gpus.device_ids)
    else:
        request["Count"] = gpus.count
    return request


def _health_check(check: HealthCheckSpec) -> dict[str, Any]:
    test = list(check.test)
    if test and test[0] not in {"CMD", "CMD-SHELL", "NONE"}:
        test.insert(0, "CMD")
    return {
        "Test": test,
        "Interval": round(check.interval * NANOSECONDS),
        "Timeout": round(check.timeout * NANOSECONDS),
        "Retries": check.retries,
        "StartPeriod": round(check.start_period * NANOSECONDS),
    }


def network_config(request: NetworkRequest) -> dict[str, Any]:
    config: dict[str, Any] = {
        "Name": request.name,
        "CheckDuplicate": True,
        "Driver": request.driver,
        "Internal": request.internal,
        "Attachable": True,
        "Labels": dict(request.labels),
    }
    if request.parent_interface:
        config["Options"] = {"parent": request.parent_interface}
    pool = {
        name: value
        for name, value in (
            ("Subnet", request.subnet),
            ("Gateway", request.gateway),
            ("IPRange", request.ip_range),
        )
        if value
    }
    if pool:
        config["IPAM"] = {"Driver": "default", "Config": [pool]}
    return config


def build_context(request: BuildRequest) -> io.BytesIO:
    """An in-memory tar: the Dockerfile under a name that no file of the user can take."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, content in (*request.files, (DOCKERFILE_NAME, request.dockerfile)):
            data = content.encode()
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    stream.seek(0)
    return stream


def single_file(name: str, data: bytes) -> bytes:
    """As an archive, which is how files get into a container."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o600
        archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


DOCKERFILE_NAME = ".trailer.Dockerfile"


def commit_config(config: Mapping[str, Any], request: CommitRequest) -> dict[str, Any]:
    """The container's configuration as its image shall have it. The engine adds again whatever is
    left out, so a value can only be taken away by another one."""
    blank = set(request.blank_env)
    kept = [pair for pair in config.get("Env") or () if pair.partition("=")[0] not in blank]
    return {
        **config,
        "Env": [*kept, *(f"{name}=" for name in sorted(blank))],
        "Labels": {**(config.get("Labels") or {}), **request.labels},
    }
