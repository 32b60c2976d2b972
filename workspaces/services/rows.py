"""Writes clean fields into a workspace's desired columns and part rows; nothing else does."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from hosts.models import Network
from trailer.sealed import seal
from workspaces.fields import gpus_body
from workspaces.models import EnvVar, Mount, NetworkAttachment, Port, Url

if TYPE_CHECKING:
    from collections.abc import Collection

    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace
    from workspaces.services.rights import Brought

ALL_PARTS = frozenset({"ports", "mounts", "urls", "env", "secret_env", "networks"})


def columns(fields: WorkspaceFields) -> dict[str, Any]:
    check = fields.health_check
    return {
        "name": fields.name,
        "description": fields.description,
        "image_id": fields.image,
        "desired_state": fields.desired_state,
        "command": list(fields.command),
        "cpus": None if fields.cpus is None else Decimal(str(fields.cpus)),
        "memory_bytes": fields.memory_bytes,
        "shm_bytes": fields.shm_bytes,
        "gpus": gpus_body(fields.gpus) or {},
        "nested_virtualization": fields.nested_virtualization,
        "health_check": {} if check is None else msgspec.to_builtins(check),
        "startup_timeout": fields.startup_timeout,
        "drain_timeout": fields.drain_timeout,
        "shared_volumes": fields.shared_volumes,
        "idle_stop_minutes": fields.idle_stop_minutes,
        "schedule": dict(fields.schedule),
        "labels": dict(fields.labels),
    }


def parts_write(
    workspace: Workspace, fields: WorkspaceFields, changed: Collection[str], brought: Brought
) -> None:
    """Rewrites each kind of part that is named in `changed`."""
    if "ports" in changed:
        workspace.ports.all().delete()
        Port.objects.bulk_create(
            Port(workspace=workspace, **msgspec.structs.asdict(port)) for port in fields.ports
        )
    if "mounts" in changed:
        workspace.mounts.all().delete()
        Mount.objects.bulk_create(
            Mount(
                workspace=workspace,
                volume_id=mount.volume_id,
                target=mount.target,
                read_only=mount.read_only,
                attached_by_id=brought.mounts.get((mount.volume_id, mount.read_only)),
                evicted=mount.volume_id in brought.evicted,
            )
            for mount in fields.mounts
        )
    if "urls" in changed:
        workspace.urls.all().delete()
        Url.objects.bulk_create(
            Url(workspace=workspace, **msgspec.structs.asdict(url)) for url in fields.urls
        )
    if "networks" in changed:
        workspace.networks.set(Network.objects.filter(pk__in=fields.networks))
        workspace.attachments.all().delete()
        NetworkAttachment.objects.bulk_create(
            NetworkAttachment(
                workspace=workspace,
                network_id=network_id,
                attached_by_id=brought.networks.get(network_id),
                evicted=network_id in brought.evicted,
            )
            for network_id in fields.networks
        )
    if not {"env", "secret_env"}.isdisjoint(changed):
        _env_write(workspace, fields)


def _env_write(workspace: Workspace, fields: WorkspaceFields) -> None:
    workspace.env_vars.all().delete()
    plain = [
        EnvVar(workspace=workspace, name=name, value=value) for name, value in fields.env.items()
    ]
    secret = [EnvVar(workspace=workspace, name=name, is_secret=True) for name in fields.secret_env]
    for row in secret:
        row.secret_token = seal(row, "secret_token", fields.secret_env[row.name])
    EnvVar.objects.bulk_create([*plain, *secret])
