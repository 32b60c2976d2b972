"""The objects a workspace points at: there, on its host, and for whoever points to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts.models import Network, Volume
from images.models import Image
from trailer import policy
from trailer.errors import Invalid

if TYPE_CHECKING:
    from uuid import UUID

    from hosts.models import Host
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace


def image_for(
    actor: Actor, fields: WorkspaceFields, host: Host, workspace: Workspace | None
) -> Image:
    """An image that stays is not judged again: it may have been disabled since."""
    if workspace is not None and workspace.image_id == fields.image:
        return workspace.image
    image = Image.objects.usable_by(actor).filter(pk=fields.image).first()
    if image is None:
        raise Invalid.field("image", "There is no such image, or you may not use it.")
    if image.host_id != host.pk:
        raise Invalid.field(
            "image", f"The image {image.name} is on another host. Add it to {host.name} first."
        )
    if not image.enabled:
        raise Invalid.field("image", f"The image {image.name} is disabled. Enable it first.")
    return image


def volumes_for(
    actor: Actor, fields: WorkspaceFields, host: Host, workspace: Workspace | None
) -> dict[UUID, Volume]:
    """What is mounted already may stay, even if someone else attached it.

    Using a volume means to mount it read-only; writing to it takes more.
    """
    present = () if workspace is None else workspace.mounts.all()
    volumes = {item.volume_id: item.volume for item in present}
    writable = {item.volume_id for item in present if not item.read_only}
    new = {mount.volume_id for mount in fields.mounts} - set(volumes)
    if new:
        found = Volume.objects.usable_by(actor).with_role(actor).filter(pk__in=new, host=host)
        volumes |= {volume.pk: volume for volume in found}
    for n, mount in enumerate(fields.mounts):
        if mount.volume_id not in volumes:
            raise Invalid.field(
                f"mounts.{n}.volume",
                f"There is no such volume on the host {host.name}, or you may not use it.",
            )
        volume = volumes[mount.volume_id]
        if mount.read_only or volume.pk in writable:
            continue
        if not policy.allows(actor, "volume.write", volume):
            raise Invalid.field(
                f"mounts.{n}.read_only",
                f"You may only read the volume {volume.name}. Mount it read-only, "
                "or ask its owner for the role editor.",
            )
    return volumes


def networks_for(
    actor: Actor, fields: WorkspaceFields, host: Host, workspace: Workspace | None
) -> list[Network]:
    """What is attached already may stay, even if someone else attached it."""
    present = {} if workspace is None else {item.pk: item for item in workspace.networks.all()}
    new = fields.networks - set(present)
    if new:
        found = Network.objects.usable_by(actor).filter(pk__in=new, host=host)
        present |= {network.pk: network for network in found}
    missing = fields.networks - set(present)
    if missing:
        raise Invalid.field(
            "networks",
            f"There is no network {min(missing)} on the host {host.name}, or you may not use it.",
        )
    return [present[pk] for pk in sorted(fields.networks)]
