"""What speaks for and against stopping workspaces, read for many of them in a few queries."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hosts.models import GpuSample
from hosts.status import is_fresh
from workspaces.choices import WorkspaceStatus
from workspaces.models import GpuHold, Timer, WorkspaceSample
from workspaces.status import workspace_status
from workspaces.timers.schedule import last_due, next_due
from workspaces.timers.verdict import (
    BUSY_GPU_PERCENT,
    Evidence,
    Use,
    Verdict,
    decide,
    use_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from workspaces.models import Workspace

# Heartbeats are 15 s apart, up to 10 min where the host's settings say so.
_LEAST_PATIENCE = timedelta(seconds=90)


def uses_of(workspaces: Sequence[Workspace], now: datetime) -> dict[UUID, dict[datetime, Use]]:
    """The raw samples of the last moments, by the time at which they came."""
    longest = max((_patience(w) for w in workspaces), default=_LEAST_PATIENCE)
    since = int((now - longest).timestamp())
    ids = [workspace.pk for workspace in workspaces]
    rows = WorkspaceSample.objects.filter(workspace_id__in=ids, resolution=0, at__gte=since)
    cards = _cards_of(ids)
    gpus = _gpu_use(cards, since)
    found: dict[UUID, dict[datetime, Use]] = defaultdict(dict)
    for row in rows:
        rates = [rate for rate in (row.network_rx_rate, row.network_tx_rate) if rate is not None]
        gpu_percent = gpus.get((row.workspace_id, row.at))
        found[row.workspace_id][datetime.fromtimestamp(row.at, UTC)] = Use(
            connections=row.connections,
            cpu_percent=row.cpu_percent,
            network_rate=sum(rates) if rates else None,
            gpu_percent=gpu_percent,
            has_unread_gpus=row.workspace_id in cards and gpu_percent is None,
        )
    return found


def _cards_of(workspace_ids: Iterable[UUID]) -> dict[UUID, set[tuple[UUID, str]]]:
    """Host and id of each, of those that have any."""
    cards: dict[UUID, set[tuple[UUID, str]]] = defaultdict(set)
    for hold in GpuHold.objects.filter(workspace_id__in=list(workspace_ids)):
        cards[hold.workspace_id].add((hold.host_id, hold.gpu))
    return cards


def _gpu_use(
    cards: Mapping[UUID, set[tuple[UUID, str]]], since: int
) -> dict[tuple[UUID, int], float]:
    """Of the busiest card, by workspace and the time of the heartbeat, which its GPUs' samples
    share. Left out where no card was seen at work and one of them could not be read."""
    hosts = {host_id for held in cards.values() for host_id, _ in held}
    if not hosts:
        return {}
    read: dict[int, dict[tuple[UUID, str], float]] = defaultdict(dict)
    for row in GpuSample.objects.filter(host_id__in=hosts, resolution=0, at__gte=since):
        if row.utilization_percent is not None:
            read[row.at][row.host_id, row.gpu] = row.utilization_percent
    found = {}
    for workspace_id, held in cards.items():
        for at, percents in read.items():
            busiest = max((percents[card] for card in held if card in percents), default=0.0)
            if busiest >= BUSY_GPU_PERCENT or held <= percents.keys():
                found[workspace_id, at] = busiest
    return found


def is_measured(workspace: Workspace, uses: dict[datetime, Use], now: datetime) -> bool:
    """Running, heard, and with a sample that says something: the first after a start has no
    rates, and work on GPUs that nobody reads shows nowhere else."""
    if workspace_status(workspace) != WorkspaceStatus.RUNNING or not is_fresh(workspace.host, now):
        return False
    newest = max((at for at, use in uses.items() if not use.has_unread_gpus), default=None)
    return newest is not None and now - newest <= _patience(workspace)


def latest_use(timer: Timer, uses: dict[datetime, Use]) -> tuple[datetime | None, str]:
    """When it was last in use, and by what."""
    used, words = timer.used_at, timer.used_by
    for at, use in sorted(uses.items()):
        said = use_words(use)
        if said and (used is None or at > used):
            used, words = at, said
    if timer.terminal_at is not None and (used is None or timer.terminal_at > used):
        used, words = timer.terminal_at, use_words(Use(terminals=True))
    return used, words


def evidence_for(workspace: Workspace, timer: Timer, now: datetime) -> Evidence:
    stop = str(workspace.schedule.get("stop") or "")
    due = last_due(stop, now)
    return Evidence(
        idle_minutes=workspace.idle_stop_minutes,
        watched_since=timer.watched_since,
        started_at=workspace.started_at,
        used_at=timer.used_at,
        used_by=timer.used_by,
        extended_until=timer.extended_until,
        stop_due=due if due is not None and due > timer.settled_at else None,
        stop_next=next_due(stop, now),
    )


def verdict_of(workspace: Workspace, now: datetime) -> Verdict:
    """What pages and the API tell; of what the last pass stored, so it makes no query when the
    timer was read with the workspace."""
    timer = getattr(workspace, "timer", None)
    if timer is None:
        timer = Timer(workspace=workspace, settled_at=workspace.created_at)
    return decide(evidence_for(workspace, timer, now), now)


def _patience(workspace: Workspace) -> timedelta:
    return max(_LEAST_PATIENCE, timedelta(seconds=3 * workspace.host.heartbeat_interval))
