"""Creating and deleting volumes and bind mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from agent.protocol import naming
from agent.protocol.binds import bind_problem, canonical_path
from hosts.choices import TombstoneKind, VolumeKind
from hosts.models import Host, Volume
from hosts.services.desired import host_desired_changed, tombstone_create
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.access.reliance import object_users
from trailer.audit.record import differences, record
from trailer.errors import Conflict, Invalid
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock
from trailer.validation import check_columns, check_one_line, check_resource_name, check_text

if TYPE_CHECKING:
    from trailer.policy import Actor


def volume_create(
    *,
    actor: Actor,
    host: Host,
    name: str,
    kind: str = VolumeKind.VOLUME,
    source: str = "",
) -> Volume:
    policy.require(actor, "volume.create")
    policy.require(actor, "host.view", host)
    policy.require(actor, "host.bind" if kind == VolumeKind.BIND else "host.volumes", host)
    check_resource_name(name)
    check_text({"source": source})
    volume = Volume(owner=actor, host=host, name=name, kind=kind, source=source)
    volume.rests_on_capability = kind == VolumeKind.BIND
    check_columns(volume, ("name", "kind", "source"))
    if kind == VolumeKind.BIND:
        volume.source = _checked_source(source)
    elif source:
        raise Invalid.field("source", "Only a bind mount has a source; leave it out.")
    with transaction.atomic():
        # The host's row is the lock: two requests can't both find the name free.
        row_lock(Host.objects.all(), host.pk)
        if Volume.objects.filter(host=host, name=name).exists():
            raise Invalid.field(
                "name", f"This host has a volume named {name} already. Choose another name."
            )
        volume.save(force_insert=True)
        host_desired_changed(host.pk)
        made = {"kind": volume.kind, "source": volume.source}
        record("volume.create", volume, actor=actor, changes=differences({}, made))
        events.publish("volume", volume.pk)
    return volume


def volume_delete(
    *, actor: Actor, volume: Volume, confirm: str = "", expected_revision: int | None = None
) -> None:
    """Of a volume the data goes too, so its name must be repeated; a bind's files stay."""
    policy.require(actor, "volume.delete", volume)
    with transaction.atomic():
        row_lock(Host.objects.all(), volume.host_id)
        current = row_get(Volume.objects.all(), volume.pk)
        # It may have been handed over meanwhile.
        policy.require(actor, "volume.delete", current)
        check_revision(current.revision, expected_revision)
        mounting = current.mounts.filter(evicted=False)
        users = sorted(set(mounting.values_list("workspace__name", flat=True)))
        if users:
            raise Conflict(
                f"Volume {current.name} is mounted by {', '.join(users)}. Unmount it there first, "
                "or evict them from it.",
                code="in_use",
            )
        if current.kind == VolumeKind.VOLUME and confirm != current.name:
            raise Invalid.field(
                "confirm",
                f"Deleting volume {current.name} removes its data for good. "
                f"Repeat its name to confirm: ?confirm={current.name}",
            )
        object_users().evicted_let_go(actor=actor, obj=current)
        if current.kind == VolumeKind.VOLUME:
            tombstone_create(
                host_id=current.host_id,
                kind=TombstoneKind.VOLUME,
                object_id=current.pk,
                name=naming.volume_name(current.name),
            )
        else:
            host_desired_changed(current.host_id)
        grants_forget(current)
        record("volume.delete", current, actor=actor)
        events.publish("volume", current.pk, deleted=True)
        current.delete()


def volume_acknowledge(
    *, actor: Actor, volume: Volume, expected_revision: int | None = None
) -> None:
    """Takes the notice off that its data is gone; without one nothing changes."""
    policy.require(actor, "volume.modify", volume)
    with transaction.atomic():
        current = row_lock(Volume.objects.all(), volume.pk)
        # It may have been handed over while this waited.
        policy.require(actor, "volume.modify", current)
        check_revision(current.revision, expected_revision)
        if current.data_gone_at is None:
            return
        gone = current.data_gone_at
        current.data_gone_at = None
        current.save(update_fields=["data_gone_at"])
        record(
            "volume.acknowledge",
            current,
            actor=actor,
            changes=differences({"data_gone_since": gone}, {"data_gone_since": None}),
        )
        events.publish("volume", current.pk)
        for workspace_id in set(current.mounts.values_list("workspace_id", flat=True)):
            events.publish("workspace", workspace_id)


def _checked_source(source: str) -> str:
    """The canonical path of a bind mount."""
    problem = bind_problem(source)
    if problem:
        raise Invalid.field("source", problem)
    check_one_line(source, field="source", noun="The path of a bind mount")
    return canonical_path(source)
