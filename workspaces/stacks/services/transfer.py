"""Handing a stack over to another owner, with everything that was made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from hosts.choices import VolumeKind
from hosts.models import Host, Network, Volume
from hosts.services.transfer import network_hand_over, volume_hand_over
from images.models import Image
from images.services.quota import check_disk_room
from images.services.transfer import image_hand_over
from trailer import policy
from trailer.access.transfer import FIELD, check_capable, hand_over, transfer
from trailer.errors import Invalid
from trailer.revisions import check_revision
from trailer.rows import row_lock
from workspaces.models import Workspace
from workspaces.services.locking import workspace_lock
from workspaces.services.transfer import workspace_hand_over
from workspaces.stacks.models import Stack
from workspaces.stacks.sync.places import bind_name

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from trailer.policy import Actor


@dataclass(frozen=True, kw_only=True)
class Parts:
    """All that a stack has on its host, in its owner's name."""

    workspaces: list[Workspace]
    images: list[Image]
    networks: list[Network]
    volumes: list[Volume]


def stack_transfer(
    *, actor: Actor, stack: Stack, owner: str, expected_revision: int | None = None
) -> Stack:
    """In one transaction, under the lock of the stack's syncs: a sync under way goes on in the new
    owner's name. Who chose where the files come from stays noted: their rights go on counting."""

    def lock() -> Stack:
        current = row_lock(Stack.objects.select_related("host", "owner"), stack.pk)
        check_revision(current.revision, expected_revision)
        row_lock(Host.objects.all(), current.host_id)
        return current

    def give(current: Stack, user: User) -> None:
        parts = parts_of(current)
        check_capable(user, "host.workspaces", current.host)
        _check_reach(parts, user)
        _hand_over_parts(actor, parts, user)
        hand_over(actor=actor, obj=current, user=user)

    return transfer(actor=actor, obj=stack, owner=owner, lock=lock, give=give)


def parts_of(stack: Stack) -> Parts:
    """Inside a transaction that holds the stack and its host. Volumes of services that the file no
    longer has, and images of earlier revisions, are the stack's too."""
    services = Workspace.objects.filter(stack=stack.pk).order_by("service")
    images = Image.objects.filter(stack_image__stack=stack)
    networks = Network.objects.filter(stack_network__stack=stack)
    volumes = Volume.objects.filter(
        Q(stack_volume__stack_name=stack.name)
        | Q(kind=VolumeKind.BIND, name__startswith=bind_name(stack, "")),
        host=stack.host_id,
        owner=stack.owner_id,
    )
    return Parts(
        workspaces=[workspace_lock(row, expected_revision=None) for row in services],
        images=list(images.select_related("host", "owner", "registry").order_by("name")),
        networks=list(networks.select_related("host", "owner").order_by("name")),
        volumes=list(volumes.select_related("host", "owner").order_by("name")),
    )


def _hand_over_parts(actor: Actor, parts: Parts, user: User) -> None:
    """The former owner reaches them through the stack, as long as that is shared with them."""
    for workspace in parts.workspaces:
        workspace_hand_over(actor=actor, workspace=workspace, user=user, share=False)
    if parts.images:
        check_disk_room(actor=actor, owner_id=user.pk, images=parts.images)
    for image in parts.images:
        image_hand_over(actor=actor, image=image, user=user, share=False)
    for network in parts.networks:
        network_hand_over(actor=actor, network=network, user=user, share=False)
    for volume in parts.volumes:
        volume_hand_over(actor=actor, volume=volume, user=user, share=False)


def _check_reach(parts: Parts, user: User) -> None:
    """What services use beside the stack's own, the new owner must be allowed to use."""
    volumes = {volume.pk for volume in parts.volumes}
    networks = {network.pk for network in parts.networks}
    for workspace in parts.workspaces:
        for mount in workspace.mounts.all():
            action = "volume.use" if mount.read_only else "volume.write"
            if mount.volume_id in volumes or policy.allows(user, action, mount.volume):
                continue
            may = "use" if mount.read_only else "write to"
            raise _out_of_reach(workspace, f"mounts the volume {mount.volume.name}", user, may)
        for network in workspace.networks.all():
            if network.pk not in networks and not policy.allows(user, "network.use", network):
                raise _out_of_reach(workspace, f"is on the network {network.name}", user, "use")


def _out_of_reach(workspace: Workspace, uses: str, user: User, may: str) -> Invalid:
    return Invalid.field(
        FIELD,
        f"The service {workspace.service} {uses}, which {user.username} may not {may}. Share it "
        "with them first, or take it out of the stack's file.",
    )
