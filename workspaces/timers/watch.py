"""The pass over all workspaces with a timer: looks, warns, starts and stops; any number of
processes may run it, at any time."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Q

from hosts.models import RollupMark
from trailer import events
from trailer.errors import ApplicationError, NotFound
from workspaces.choices import DesiredState
from workspaces.models import Timer, Workspace
from workspaces.services.ledger import TimerEvent, timer_event_write
from workspaces.services.locking import workspace_lock
from workspaces.services.run import run_locked
from workspaces.services.timer import timer_of
from workspaces.timers.evidence import evidence_for, is_measured, latest_use, uses_of
from workspaces.timers.schedule import last_due
from workspaces.timers.verdict import SCHEDULE, decide

if TYPE_CHECKING:
    from workspaces.timers.verdict import Use, Verdict

logger = logging.getLogger(__name__)

PERIOD: Final = 20
_LEASE: Final = "timers"
# Without passes for so long nobody has looked, and being idle begins anew.
_GAP: Final = timedelta(seconds=6 * PERIOD)
# What is in use all the time is written down this often.
_NOTED_EVERY: Final = timedelta(seconds=45)


def timers_run(now: datetime) -> bool:
    """False when another process has just done it."""
    before = _lease(now)
    if before is None:
        return False
    with_timer = Workspace.objects.exclude(idle_stop_minutes=None, schedule={})
    workspaces = list(with_timer.select_related("host").order_by("pk"))
    running = [w for w in workspaces if w.desired_state == DesiredState.RUNNING]
    uses = uses_of([w for w in running if w.idle_stop_minutes], now)
    for workspace in workspaces:
        try:
            _look(workspace, uses.get(workspace.pk, {}), now, gap=now - before > _GAP)
        except NotFound:
            continue
        except Exception:
            # One workspace's trouble is not the others'.
            logger.exception("a timer failed", extra={"workspace": str(workspace.pk)})
    return True


def _lease(now: datetime) -> datetime | None:
    """When the pass before this one began; None while that is hardly over."""
    moment = int(now.timestamp())
    with transaction.atomic():
        RollupMark.objects.get_or_create(family=_LEASE, resolution=0)
        mark = RollupMark.objects.select_for_update().get(family=_LEASE, resolution=0)
        if moment - mark.until < PERIOD / 2:
            return None
        RollupMark.objects.filter(pk=mark.pk).update(until=moment)
    return datetime.fromtimestamp(mark.until, UTC)


def _look(workspace: Workspace, uses: dict[datetime, Use], now: datetime, *, gap: bool) -> None:
    if workspace.desired_state == DesiredState.STOPPED:
        _start_if_due(workspace, now)
        return
    timer = timer_of(workspace)
    _note(workspace, timer, uses, now, gap=gap)
    verdict = decide(evidence_for(workspace, timer, now), now)
    if verdict.stops:
        _stop(workspace, uses, now)
    elif verdict.warns and verdict.stops_at != timer.warned_of:
        _warn(workspace, verdict)


def _note(
    workspace: Workspace, timer: Timer, uses: dict[datetime, Use], now: datetime, *, gap: bool
) -> None:
    """Writes only what moved; `timer` is brought up to date with it."""
    values: dict[str, object] = {}
    if not is_measured(workspace, uses, now):
        if timer.watched_since is not None:
            values["watched_since"] = None
    elif timer.watched_since is None or gap:
        values["watched_since"] = now
    used, words = latest_use(timer, uses)
    if used is not None and (timer.used_at is None or used - timer.used_at >= _NOTED_EVERY):
        values |= {"used_at": used, "used_by": words[:80], "warned_of": None}
    if not values:
        return
    shown = "watched_since" in values or timer.warned_of is not None
    for name, value in values.items():
        setattr(timer, name, value)
    Timer.objects.filter(pk=timer.pk).update(**values)
    if shown:
        events.publish("workspace", workspace.pk)


def _stop(workspace: Workspace, uses: dict[datetime, Use], now: datetime) -> None:
    """Decided again under the lock: somebody may have extended it, stopped it or come back."""
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=None)
        if current.desired_state != DesiredState.RUNNING:
            return
        timer = timer_of(current)
        timer.used_at, timer.used_by = latest_use(timer, uses)
        verdict = decide(evidence_for(current, timer, now), now)
        if verdict.stops:
            cause = f"Stopped because {verdict.because}."
            run_locked(current, DesiredState.STOPPED, actor=None, by=verdict.kind, cause=cause)


def _warn(workspace: Workspace, verdict: Verdict) -> None:
    """Once for each moment, whoever else looks at the same time."""
    with transaction.atomic():
        other = Q(warned_of=None) | ~Q(warned_of=verdict.stops_at)
        marked = Timer.objects.filter(other, workspace=workspace.pk).update(
            warned_of=verdict.stops_at
        )
        if marked:
            cause = f"Stops at {verdict.stops_at:%H:%M} UTC because {verdict.because}."
            timer_event_write(workspace, TimerEvent.WARNING, cause=cause, by=verdict.kind)
            events.publish("workspace", workspace.pk)


def _start_if_due(workspace: Workspace, now: datetime) -> None:
    line = str(workspace.schedule.get("start") or "")
    due = last_due(line, now)
    if due is None:
        return
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=None)
        timer = timer_of(current)
        superseded = last_due(str(current.schedule.get("stop") or ""), now)
        if (
            current.desired_state != DesiredState.STOPPED
            or due <= timer.settled_at
            or (superseded is not None and superseded >= due)
        ):
            return
        try:
            cause = f"Started by its schedule, due at {due:%H:%M} UTC."
            run_locked(current, DesiredState.RUNNING, actor=None, by=SCHEDULE, cause=cause)
        except ApplicationError as refusal:
            if timer.refused_start != due:
                Timer.objects.filter(pk=timer.pk).update(refused_start=due)
                cause = f"The start due at {due:%H:%M} UTC was refused: {refusal.message}"
                timer_event_write(current, TimerEvent.REFUSED, cause=cause, by=SCHEDULE)
                events.publish("workspace", current.pk)
