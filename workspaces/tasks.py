"""Background jobs that see all apps; each finds its own work in the database."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from hosts.metrics.families import GPUS, HOSTS
from hosts.metrics.rollup import roll_up
from trailer.jobs import Job
from workspaces.metrics import WORKSPACES
from workspaces.presence import hosts_fallen_silent


@shared_task(name=Job.MARK_SILENT_HOSTS.value)
def mark_silent_hosts() -> None:
    """Browsers are told when a host falls silent; until then nothing else would tell them."""
    hosts_fallen_silent(timezone.now())


@shared_task(name=Job.ROLL_UP_METRICS.value)
def roll_up_metrics() -> None:
    """Samples become minutes, minutes become hours, and what is old goes."""
    now = int(timezone.now().timestamp())
    for family in (HOSTS, GPUS, WORKSPACES):
        roll_up(family, now)
