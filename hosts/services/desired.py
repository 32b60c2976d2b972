"""Marks a host's state document as outdated; every service that changes desired state calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F

from hosts.models import Host, Tombstone
from trailer import events

if TYPE_CHECKING:
    from uuid import UUID

    from hosts.choices import TombstoneKind


def host_desired_changed(host_id: UUID) -> None:
    """Inside the caller's transaction: the new number commits together with the change itself."""
    Host.objects.filter(pk=host_id).update(desired_version=F("desired_version") + 1)
    events.nudge(host_id)


def tombstone_create(*, host_id: UUID, kind: TombstoneKind, object_id: UUID, name: str) -> None:
    """`name` is the engine's name of the object; the row goes when the agent has removed it."""
    Tombstone.objects.get_or_create(
        kind=kind, object_id=object_id, defaults={"host_id": host_id, "name": name}
    )
    host_desired_changed(host_id)
