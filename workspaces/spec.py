"""From a workspace's fields to the spec that server and agent compare; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol import naming
from agent.protocol.compare import normalise
from agent.protocol.spec import GpuSpec, MountSpec, WorkspaceSpec
from hosts.choices import VolumeKind
from images.selectors import engine_ref
from workspaces.fields import WORKSPACE_PARTS, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from hosts.models import Volume
    from images.models import Image
    from workspaces.fields import MountFields, WorkspaceFields
    from workspaces.gpus import GpuWish
    from workspaces.models import Workspace

__all__ = ["WORKSPACE_PARTS", "spec_from_fields", "workspace_spec"]


def workspace_spec(workspace: Workspace) -> WorkspaceSpec:
    """Needs WORKSPACE_PARTS prefetched and the image selected; makes no query of its own."""
    return spec_from_fields(
        fields_of(workspace),
        image=workspace.image,
        volumes={mount.volume_id: mount.volume for mount in workspace.mounts.all()},
        generation=workspace.generation,
        gpu_ids=tuple(hold.gpu for hold in workspace.gpu_holds.all()),
    )


def spec_from_fields(
    fields: WorkspaceFields,
    *,
    image: Image,
    volumes: Mapping[UUID, Volume],
    generation: int,
    gpu_ids: tuple[str, ...] = (),
) -> WorkspaceSpec:
    return normalise(
        WorkspaceSpec(
            name=fields.name,
            image_ref=engine_ref(image),
            image_id=str(image.pk),
            image_engine_id=image.engine_id,
            command=fields.command,
            env=dict(fields.env),
            secret_env=dict(fields.secret_env),
            cpus=fields.cpus,
            memory_bytes=fields.memory_bytes,
            shm_bytes=fields.shm_bytes,
            gpus=_gpus(fields.gpus, gpu_ids),
            nested_virtualization=fields.nested_virtualization,
            ports=fields.ports,
            mounts=tuple(_mount(mount, volumes[mount.volume_id]) for mount in fields.mounts),
            network_ids=tuple(str(network_id) for network_id in fields.networks),
            urls=fields.urls,
            health_check=fields.health_check,
            labels=dict(fields.labels),
            generation=generation,
        )
    )


def _gpus(wish: GpuWish | None, gpu_ids: tuple[str, ...]) -> GpuSpec | None:
    """The very cards, so that the engine never picks one that somebody else holds."""
    if wish is None:
        return None
    if gpu_ids:
        return GpuSpec(device_ids=gpu_ids)
    return GpuSpec(count=wish.count, device_ids=wish.device_ids)


def _mount(mount: MountFields, volume: Volume) -> MountSpec:
    is_bind = volume.kind == VolumeKind.BIND
    return MountSpec(
        target=mount.target,
        kind=volume.kind,
        source=volume.source if is_bind else naming.volume_name(volume.name),
        volume_id=str(volume.pk),
        read_only=mount.read_only,
    )
