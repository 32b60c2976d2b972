"""Handing networks and volumes over to another owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol.subnets import chooses_addresses
from hosts.choices import VolumeKind
from hosts.models import Host, Network, Volume
from hosts.services.networks import chosen_addresses
from trailer.access.transfer import check_capable, hand_over, part_of_stack, transfer
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from trailer.policy import Actor


def network_transfer(
    *, actor: Actor, network: Network, owner: str, expected_revision: int | None = None
) -> Network:
    def lock() -> Network:
        row_lock(Host.objects.all(), network.host_id)
        current = row_get(Network.objects.select_related("host", "owner"), network.pk)
        check_revision(current.revision, expected_revision)
        return current

    def give(current: Network, user: User) -> None:
        if hasattr(current, "stack_network"):
            raise part_of_stack(current, current.stack_network.stack.name)
        network_hand_over(actor=actor, network=current, user=user)

    return transfer(actor=actor, obj=network, owner=owner, lock=lock, give=give)


def volume_transfer(
    *, actor: Actor, volume: Volume, owner: str, expected_revision: int | None = None
) -> Volume:
    """Its data stays where it is, and so do the mounts of workspaces that have it."""

    def lock() -> Volume:
        row_lock(Host.objects.all(), volume.host_id)
        current = row_get(Volume.objects.select_related("host", "owner"), volume.pk)
        check_revision(current.revision, expected_revision)
        return current

    def give(current: Volume, user: User) -> None:
        if (stack_name := _stack_name(current)) is not None:
            raise part_of_stack(current, stack_name)
        volume_hand_over(actor=actor, volume=current, user=user)

    return transfer(actor=actor, obj=volume, owner=owner, lock=lock, give=give)


def network_hand_over(*, actor: Actor, network: Network, user: User, share: bool = True) -> None:
    """Inside the caller's transaction, under the host's lock; needs host and owner. One with
    chosen addresses is only for who may choose them."""
    check_capable(user, "host.networks", network.host)
    if chooses_addresses(chosen_addresses(network)):
        check_capable(user, "host.addresses", network.host)
    # The new owner has what it takes.
    Network.objects.filter(pk=network.pk).update(rests_on_capability=True)
    hand_over(actor=actor, obj=network, user=user, share=share)


def volume_hand_over(*, actor: Actor, volume: Volume, user: User, share: bool = True) -> None:
    """The same for a volume; a folder of the host is only for who may mount such."""
    action = "host.bind" if volume.kind == VolumeKind.BIND else "host.volumes"
    check_capable(user, action, volume.host)
    Volume.objects.filter(pk=volume.pk).update(rests_on_capability=True)
    hand_over(actor=actor, obj=volume, user=user, share=share)


def _stack_name(volume: Volume) -> str | None:
    """It outlives its stack; only one that is there can miss it."""
    if not hasattr(volume, "stack_volume"):
        return None
    name = volume.stack_volume.stack_name
    return name if volume.host.stacks.filter(name=name).exists() else None
