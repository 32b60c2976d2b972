"""The writable fields of a workspace as one value: compared, stored as a revision, restored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from agent.protocol.spec import HealthCheckSpec, PortSpec, UrlSpec
from trailer.sealed import unseal
from workspaces.choices import DesiredState
from workspaces.gpus import GpuWish

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from workspaces.models import Workspace

# What fields_of() and workspace_spec() read without further queries.
WORKSPACE_PARTS = ("ports", "mounts__volume", "urls", "env_vars", "networks", "gpu_holds")


@dataclass(frozen=True, kw_only=True)
class MountFields:
    volume_id: UUID
    target: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkspaceFields:
    """Clean values only: they come out of validation, or out of the database."""

    name: str
    host: UUID
    image: UUID
    description: str = ""
    desired_state: str = DesiredState.RUNNING.value
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    # Plain values, in memory only; repr=False keeps them out of traces and logs.
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cpus: float | None = None
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    gpus: GpuWish | None = None
    nested_virtualization: bool = False
    ports: tuple[PortSpec, ...] = ()
    mounts: tuple[MountFields, ...] = ()
    networks: frozenset[UUID] = frozenset()
    urls: tuple[UrlSpec, ...] = ()
    health_check: HealthCheckSpec | None = None
    startup_timeout: int = 60
    drain_timeout: int = 10
    # Whether an old and a new container of it may have its volumes open at the same time.
    shared_volumes: bool = False
    idle_stop_minutes: int | None = None
    schedule: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def fields_of(workspace: Workspace) -> WorkspaceFields:
    """Needs WORKSPACE_PARTS prefetched; decrypts the secrets."""
    env_vars = workspace.env_vars.all()
    return WorkspaceFields(
        name=workspace.name,
        host=workspace.host_id,
        image=workspace.image_id,
        description=workspace.description,
        desired_state=workspace.desired_state,
        command=tuple(workspace.command),
        env={var.name: var.value for var in env_vars if not var.is_secret},
        secret_env={var.name: unseal(var, "secret_token") for var in env_vars if var.is_secret},
        cpus=None if workspace.cpus is None else float(workspace.cpus),
        memory_bytes=workspace.memory_bytes,
        shm_bytes=workspace.shm_bytes,
        gpus=msgspec.convert(workspace.gpus, GpuWish) if workspace.gpus else None,
        nested_virtualization=workspace.nested_virtualization,
        ports=_ports_of(workspace),
        mounts=tuple(
            MountFields(volume_id=mount.volume_id, target=mount.target, read_only=mount.read_only)
            for mount in workspace.mounts.all()
        ),
        networks=frozenset(network.pk for network in workspace.networks.all()),
        urls=tuple(
            UrlSpec(
                subdomain=url.subdomain,
                domain=url.domain,
                port=url.port,
                tls=url.tls,
                auth=url.auth,
            )
            for url in workspace.urls.all()
        ),
        health_check=msgspec.convert(workspace.health_check, HealthCheckSpec)
        if workspace.health_check
        else None,
        startup_timeout=workspace.startup_timeout,
        drain_timeout=workspace.drain_timeout,
        shared_volumes=workspace.shared_volumes,
        idle_stop_minutes=workspace.idle_stop_minutes,
        schedule=dict(workspace.schedule),
        labels=dict(workspace.labels),
    )


def _ports_of(workspace: Workspace) -> tuple[PortSpec, ...]:
    return tuple(
        PortSpec(
            container_port=port.container_port,
            protocol=port.protocol,
            host_port=port.host_port,
            host_ip=port.host_ip,
        )
        for port in workspace.ports.all()
    )


def body_of(fields: WorkspaceFields) -> dict[str, Any]:
    """The API's shape, without secret values: what a revision stores and what a form shows."""
    return {
        "name": fields.name,
        "description": fields.description,
        "host": str(fields.host),
        "image": str(fields.image),
        "desired_state": fields.desired_state,
        "command": list(fields.command),
        "env": dict(fields.env),
        "cpus": fields.cpus,
        "memory_bytes": fields.memory_bytes,
        "shm_bytes": fields.shm_bytes,
        "gpus": gpus_body(fields.gpus),
        "nested_virtualization": fields.nested_virtualization,
        "ports": [msgspec.to_builtins(port) for port in fields.ports],
        "mounts": [
            {"volume": str(item.volume_id), "target": item.target, "read_only": item.read_only}
            for item in fields.mounts
        ],
        "networks": sorted(str(network) for network in fields.networks),
        "urls": [msgspec.to_builtins(url) for url in fields.urls],
        "health_check": None
        if fields.health_check is None
        else msgspec.to_builtins(fields.health_check),
        "startup_timeout": fields.startup_timeout,
        "drain_timeout": fields.drain_timeout,
        "shared_volumes": fields.shared_volumes,
        "idle_stop_minutes": fields.idle_stop_minutes,
        "schedule": dict(fields.schedule),
        "labels": dict(fields.labels),
    }


def gpus_body(gpus: GpuWish | None) -> dict[str, Any] | None:
    """Only the way that was asked for, so that what is read may be sent back."""
    if gpus is None:
        return None
    body = {"device_ids": list(gpus.device_ids)} if gpus.device_ids else {"count": gpus.count}
    return {**body, "shared": True} if gpus.shared else body
