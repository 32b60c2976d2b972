"""Whether and when a workspace stops by itself, and why, in words; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

IDLE: Final = "idle"
SCHEDULE: Final = "schedule"
# Sums below these are what a resting program does anyway.
BUSY_CPU_PERCENT: Final = 5.0
BUSY_NETWORK_RATE: Final = 1024
BUSY_GPU_PERCENT: Final = 5.0
# So long before it happens people are told.
WARNING: Final = timedelta(minutes=10)
# What was used a moment ago is in use: samples come with heartbeats.
_JUST_NOW: Final = timedelta(seconds=90)


@dataclass(frozen=True, kw_only=True)
class Use:
    """One sample of a workspace; None is unknown, and unknown is no use, but with
    `has_unread_gpus` it is no proof of idleness either."""

    connections: float | None = None
    cpu_percent: float | None = None
    network_rate: float | None = None
    gpu_percent: float | None = None
    has_unread_gpus: bool = False
    terminals: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """`watched_since`: from when on samples came without a gap; None while none come, and then
    nobody can say that a workspace is idle. `stop_due`: a scheduled stop that is due by now."""

    idle_minutes: int | None = None
    watched_since: datetime | None = None
    started_at: datetime | None = None
    used_at: datetime | None = None
    used_by: str = ""
    extended_until: datetime | None = None
    stop_due: datetime | None = None
    stop_next: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`stops_at` is None when nothing stops it, or nobody can tell yet."""

    kind: str = ""
    idle_since: datetime | None = None
    stops_at: datetime | None = None
    because: str = ""
    in_use: bool = False
    warns: bool = False
    stops: bool = False


def use_words(use: Use) -> str:
    """By what a workspace is in use; empty when it is not."""
    if use.terminals:
        return "an open terminal"
    if use.connections:
        many = max(1, round(use.connections))
        return f"{many} open connection{'s' if many > 1 else ''}"
    if use.gpu_percent is not None and use.gpu_percent >= BUSY_GPU_PERCENT:
        return f"a GPU at {use.gpu_percent:.0f} %"
    if use.cpu_percent is not None and use.cpu_percent >= BUSY_CPU_PERCENT:
        return f"the processor at {use.cpu_percent:.0f} %"
    if use.network_rate is not None and use.network_rate >= BUSY_NETWORK_RATE:
        return f"network traffic of {use.network_rate / 1024:.0f} KiB/s"
    return ""


def decide(evidence: Evidence, now: datetime) -> Verdict:
    """The earlier of what the schedule and what idleness would do."""
    found = [v for v in (_scheduled(evidence, now), _idle(evidence, now)) if v is not None]
    sure = [verdict for verdict in found if verdict.stops_at is not None]
    if sure:
        return min(sure, key=lambda verdict: (verdict.stops_at, verdict.kind))
    return found[0] if found else Verdict()


def _scheduled(evidence: Evidence, now: datetime) -> Verdict | None:
    due = evidence.stop_due or evidence.stop_next
    if due is None:
        return None
    stops_at = _later(due, evidence.extended_until)
    because = f"its schedule stops it at {_clock(due, now)}"
    left = stops_at - now
    return Verdict(
        kind=SCHEDULE,
        stops_at=stops_at,
        because=because,
        warns=left <= WARNING,
        stops=left <= timedelta(0),
    )


def _idle(evidence: Evidence, now: datetime) -> Verdict | None:
    if not evidence.idle_minutes:
        return None
    since = evidence.watched_since
    if since is None:
        because = "its use is not measured now, so nobody can tell whether it is idle"
        return Verdict(kind=IDLE, because=because)
    used = evidence.used_at
    if used is not None and now - used <= _JUST_NOW:
        return Verdict(kind=IDLE, in_use=True, because=f"it is in use: {evidence.used_by}")
    since = _later(_later(since, used), evidence.started_at)
    allowed = timedelta(minutes=evidence.idle_minutes)
    stops_at = _later(since + allowed, evidence.extended_until)
    because = (
        f"no connection, and no work of processor, network or GPU since {_clock(since, now)} "
        f"(idle stop after {evidence.idle_minutes} min)"
    )
    left = stops_at - now
    return Verdict(
        kind=IDLE,
        idle_since=since,
        stops_at=stops_at,
        because=because,
        warns=left <= min(WARNING, allowed / 2),
        stops=left <= timedelta(0),
    )


def _later(one: datetime, other: datetime | None) -> datetime:
    return one if other is None else max(one, other)


def _clock(moment: datetime, now: datetime) -> str:
    """The date only where it is another day."""
    shape = "%H:%M UTC" if moment.date() == now.date() else "%Y-%m-%d %H:%M UTC"
    return moment.strftime(shape)
