"""What people are told about a workspace's timer; reads nothing but the workspace and its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workspaces.choices import DesiredState
from workspaces.timers.evidence import verdict_of
from workspaces.timers.schedule import next_due

if TYPE_CHECKING:
    from datetime import datetime

    from workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class Told:
    kind: str
    in_use: bool
    idle_since: datetime | None
    stops_at: datetime | None
    because: str
    warned: bool
    extended_until: datetime | None
    starts_at: datetime | None


def timer_told(workspace: Workspace, now: datetime) -> Told | None:
    """None for a workspace that only people start and stop."""
    if workspace.idle_stop_minutes is None and not workspace.schedule:
        return None
    starts_at = next_due(str(workspace.schedule.get("start") or ""), now)
    if workspace.desired_state != DesiredState.RUNNING:
        return Told(
            kind="",
            in_use=False,
            idle_since=None,
            stops_at=None,
            because="",
            warned=False,
            extended_until=None,
            starts_at=starts_at,
        )
    verdict = verdict_of(workspace, now)
    timer = getattr(workspace, "timer", None)
    extended = None if timer is None else timer.extended_until
    return Told(
        kind=verdict.kind,
        in_use=verdict.in_use,
        idle_since=verdict.idle_since,
        stops_at=verdict.stops_at,
        because=verdict.because,
        warned=verdict.warns,
        extended_until=extended if extended is not None and extended > now else None,
        starts_at=starts_at,
    )


def stop_warning(workspace: Workspace, now: datetime) -> str:
    """For whoever looks at another page; empty unless it stops within minutes."""
    told = timer_told(workspace, now)
    if told is None or not told.warned or told.stops_at is None:
        return ""
    return f"Stops at {told.stops_at:%H:%M} UTC because {told.because}."
