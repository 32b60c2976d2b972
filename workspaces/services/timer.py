"""Writes of a workspace's timer: a run that begins anew, more time, and that somebody is there."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from trailer import events, policy
from trailer.errors import Conflict
from workspaces.choices import DesiredState
from workspaces.models import Timer, Workspace
from workspaces.selectors import workspace_get
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.validation.fields import check_known
from workspaces.validation.scalars import integer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from trailer.policy import Actor

logger = logging.getLogger(__name__)

DEFAULT_MINUTES: Final = 60
MAX_MINUTES: Final = 7 * 24 * 60
# An open terminal or URL is noted this often, not with each check or request.
_NOTED_EVERY: Final = timedelta(seconds=30)


def timer_settle(workspace: Workspace) -> None:
    """Inside the caller's transaction: whatever was due, extended or seen before is past."""
    if workspace.idle_stop_minutes is None and not workspace.schedule:
        Timer.objects.filter(workspace=workspace).delete()
        return
    fresh: dict[str, Any] = {"settled_at": timezone.now(), "used_by": ""}
    names = ("watched_since", "used_at", "extended_until", "warned_of", "refused_start")
    fresh |= dict.fromkeys(names)
    Timer.objects.update_or_create(workspace=workspace, defaults=fresh)


def timer_of(workspace: Workspace) -> Timer:
    """Under the workspace's lock."""
    timer, _ = Timer.objects.get_or_create(
        workspace=workspace, defaults={"settled_at": workspace.created_at}
    )
    return timer


def workspace_extend(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
) -> Workspace:
    """Keep it running for so many minutes from now, whatever schedule and idleness say."""
    policy.require(actor, "workspace.modify", workspace)
    check_known(data, ("minutes",))
    minutes = data.get("minutes")
    if minutes is not None:
        minutes = integer(minutes, "minutes", least=1, most=MAX_MINUTES)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        stops = current.idle_stop_minutes is not None or current.schedule.get("stop")
        if not stops or current.desired_state != DesiredState.RUNNING:
            raise Conflict(f"Nothing is about to stop the workspace {current.name} by itself.")
        minutes = minutes or current.idle_stop_minutes or DEFAULT_MINUTES
        until = timezone.now() + timedelta(minutes=minutes)
        timer = timer_of(current)
        Timer.objects.filter(pk=timer.pk).update(extended_until=until, warned_of=None)
        cause = f"Kept running until {until:%Y-%m-%d %H:%M} UTC at least."
        event_write(current, actor=actor, kind=UserEvent.EXTEND, cause=cause)
        events.publish("workspace", current.pk)
        return workspace_get(current.pk)


def terminal_seen(workspace_id: UUID) -> None:
    """Somebody has a terminal open; a workspace that never stops by itself has no such row."""
    now = timezone.now()
    old = Q(terminal_at=None) | Q(terminal_at__lt=now - _NOTED_EVERY)
    Timer.objects.filter(old, workspace_id=workspace_id).update(terminal_at=now)


def visit_seen(timer: Timer) -> None:
    """Somebody uses a URL through the server. No sample shows that: the agent connects from the
    container's own loopback. `timer` is as it was read; only an old note costs a write."""
    now = timezone.now()
    if timer.used_at is not None and timer.used_at >= now - _NOTED_EVERY:
        return
    rows = Timer.objects.filter(Q(used_at=None) | Q(used_at__lt=now), pk=timer.pk)
    try:
        rows.update(used_at=now, used_by="an open URL", warned_of=None)
    except DatabaseError:
        # A note that cannot be written turns no visitor away; the next request tries again.
        logger.warning("a visit was not noted", exc_info=True)
        return
    if timer.warned_of is not None:
        events.publish("workspace", timer.pk)
