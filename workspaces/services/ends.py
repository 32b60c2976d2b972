"""How containers ended: equal ends that follow each other are one row of the ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F
from django.utils import timezone

from agent.protocol.session import TELLS_EXITS
from workspaces.models import Event, Workspace
from workspaces.story.rows import CRASHED, RESTARTED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from hosts.models import Host
    from workspaces.validation.report import LedgerEntry

KINDS: Final = frozenset({CRASHED, RESTARTED})
BY: Final = "engine"
UNKNOWN: Final = "why is not known"
# A loop of crashes has pauses of a minute at most; what comes much later is told by itself.
_TOGETHER: Final = timedelta(hours=1)
_MOST: Final = 2**31 - 1


def end_record(workspace: Workspace, entry: LedgerEntry, *, epoch: int, seq: int) -> bool:
    """False when it is counted already. The workspace's row is locked by the caller."""
    # Reports come in order: with a newer one of this session there, this one was taken before.
    rows = Event.objects.filter(workspace=workspace)
    if rows.filter(report_epoch=epoch, report_seq__gte=seq).exists():
        return False
    values: dict[str, Any] = {**entry.columns, "report_epoch": epoch, "report_seq": seq}
    newest = rows.first()
    if newest is not None and _was_counted(newest, values):
        return False
    if newest is not None and _is_equal(newest, values):
        _raise(newest, values)
        return True
    Event.objects.create(workspace=workspace, actor_name=BY, **values)
    return True


def restarts_record(
    host: Host, workspace_id: UUID, before: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Of an agent that tells no exits: what its engine counted since the last status."""
    times = now["restart_count"] - before["restart_count"]
    same = before["container_id"] and before["container_id"] == now["container_id"]
    if TELLS_EXITS in host.capabilities or not same or times <= 0:
        return
    at = timezone.now()
    values = {"kind": RESTARTED, "cause": UNKNOWN, "at": at, "count": times, "exit": None}
    newest = Event.objects.filter(workspace=workspace_id).first()
    if newest is not None and _is_equal(newest, values):
        _raise(newest, values)
        return
    Event.objects.create(workspace_id=workspace_id, actor_name=BY, last_at=at, **values)


def _was_counted(newest: Event, values: Mapping[str, Any]) -> bool:
    """Sent again by an agent that was started anew before it heard that this was taken."""
    same = bool(newest.kind == values["kind"] and newest.exit == values["exit"])
    last = values["last_at"] or values["at"]
    return same and bool(newest.at <= values["at"] and last <= (newest.last_at or newest.at))


def _is_equal(newest: Event, values: Mapping[str, Any]) -> bool:
    same = all(getattr(newest, name) == values[name] for name in ("kind", "exit", "cause"))
    gap = abs(values["at"] - (newest.last_at or newest.at))
    return same and bool(gap <= _TOGETHER)


def _raise(newest: Event, values: Mapping[str, Any]) -> None:
    given = ("health_output", "last_lines", "report_epoch", "report_seq")
    Event.objects.filter(pk=newest.pk).update(
        count=F("count") + min(values["count"], _MOST - newest.count),
        last_at=values.get("last_at") or values["at"],
        **{name: values[name] for name in given if name in values},
    )
