"""Told to the workspaces that mount a volume which was made again, empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils import timezone

from trailer import events
from workspaces.models import Event, Workspace

if TYPE_CHECKING:
    from hosts.models import Volume

KIND: Final = "data_lost"
BY: Final = "engine"


def volume_data_gone(volume: Volume) -> None:
    """One event each; the notice that stays is the volume's own (hosts.volume_notice)."""
    rows = Workspace.objects.filter(mounts__volume=volume).distinct().order_by("pk")
    cause = (
        f"The volume {volume.name} was missing on the host and was made again, empty. "
        "The data that was in it is gone."
    )
    now = timezone.now()
    for workspace in rows:
        Event.objects.create(
            workspace=workspace,
            at=now,
            kind=KIND,
            cause=cause,
            actor_name=BY,
            revision=workspace.revision,
        )
        events.publish("workspace", workspace.pk)
