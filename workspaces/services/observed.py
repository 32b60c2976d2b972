"""What agents report about workspaces: writes observed columns only, never older over newer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from trailer import events
from workspaces.models import Event, Revision, Workspace
from workspaces.services import ends
from workspaces.services.ends import end_record, restarts_record
from workspaces.validation.report import clean_event, clean_observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.report import WorkspaceEvent, WorkspaceStatus
    from hosts.models import Host

_HEAL = "heal"
_DRIFT = "outside Trailer"
_SHOWN = (
    "observed_status",
    "message",
    "observed_revision",
    "container_id",
    "started_at",
    "restart_count",
    "health",
    "exit_code",
)


def workspace_observed(host: Host, item: WorkspaceStatus, epoch: int) -> bool:
    """False when stale, or when the workspace is not (or no longer) on this host.

    Raises Invalid for a report that no retry can make acceptable.
    """
    observation = clean_observation(item, epoch)
    ours = Workspace.objects.filter(pk=observation.workspace_id, host=host)
    with transaction.atomic():
        before = ours.select_for_update().values(*_SHOWN).first()
        newer = Q(report_epoch__lt=epoch) | Q(report_epoch=epoch, report_seq__lt=item.seq)
        updated = ours.filter(newer).update(
            **observation.columns,
            # Never backwards, and never a revision that does not exist.
            observed_revision=Greatest(
                F("observed_revision"), Least(Value(observation.revision), F("revision"))
            ),
            observed_at=timezone.now(),
            report_epoch=epoch,
            report_seq=item.seq,
        )
        now = ours.values(*_SHOWN).get() if updated else before
        if before is not None and now is not None and now != before:
            restarts_record(host, observation.workspace_id, before, now)
            events.publish("workspace", observation.workspace_id)
    return bool(updated)


def workspace_event_record(host: Host, item: WorkspaceEvent, epoch: int) -> bool:
    """One ledger row per report, but for equal ends of a container, which are counted; False when
    it is there already or the workspace is gone."""
    event = clean_event(item, epoch)
    with transaction.atomic():
        # Locked: a deletion at the same moment is before this row, or takes it along.
        ours = Workspace.objects.select_for_update(of=("self",)).filter(host=host)
        workspace = ours.filter(pk=event.workspace_id).first()
        if workspace is None or _was_told(workspace, event.columns, item.seq):
            return False
        if item.event in ends.KINDS:
            created = end_record(workspace, event, epoch=epoch, seq=item.seq)
        else:
            values: dict[str, Any] = {**event.columns, **_whose(workspace, item, event.revision)}
            _, created = Event.objects.get_or_create(
                workspace=workspace, report_epoch=epoch, report_seq=item.seq, defaults=values
            )
        if created:
            events.publish("workspace", workspace.pk)
    return created


def _was_told(workspace: Workspace, columns: Mapping[str, Any], seq: int) -> bool:
    """An agent that was started anew before it heard that a row was taken sends it again, in a new
    session. Its numbers go on over its starts, unless its state was lost."""
    same = {name: columns[name] for name in ("at", "kind", "cause", "cycle")}
    return Event.objects.filter(workspace=workspace, report_seq=seq, **same).exists()


def _whose(workspace: Workspace, item: WorkspaceEvent, revision: int | None) -> dict[str, Any]:
    """Healing is nobody's act: what was done to the container past Trailer is put right. In one
    case that is a replace, which its cause tells."""
    if item.event == _HEAL or _DRIFT in item.cause:
        return {"actor_name": "engine"}
    return {"actor_id": _actor_of(workspace, revision)}


def _actor_of(workspace: Workspace, revision: int | None) -> Any:
    """Whoever made the revision that the agent acted on is who caused it."""
    if revision is None:
        return None
    return (
        Revision.objects.filter(workspace=workspace, revision=revision)
        .values_list("actor_id", flat=True)
        .first()
    )
