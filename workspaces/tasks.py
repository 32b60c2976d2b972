"""Background jobs that see all apps; each finds its own work in the database."""

from __future__ import annotations

from datetime import datetime, timedelta

from celery import shared_task
from django.utils import timezone

from hosts.metrics.families import GPUS, HOSTS
from hosts.metrics.rollup import roll_up
from hosts.services.sessions import hosts_mark_silent
from trailer.jobs import Job
from trailer.leases.lease import run_leased
from workspaces.control.compile import documents_end
from workspaces.metrics import WORKSPACES
from workspaces.story.prune import events_prune
from workspaces.timers.watch import timers_run


@shared_task(name=Job.MARK_SILENT_HOSTS.value)
def mark_silent_hosts() -> None:
    """Browsers are told when a host falls silent; until then nothing else would tell them."""
    hosts_mark_silent(timezone.now())


@shared_task(name=Job.ROLL_UP_METRICS.value)
def roll_up_metrics() -> None:
    """Samples become minutes, minutes become hours, and what is old goes."""

    def work(now: datetime) -> None:
        for family in (HOSTS, GPUS, WORKSPACES):
            roll_up(family, int(now.timestamp()))

    run_leased(Job.ROLL_UP_METRICS, work, every=timedelta(seconds=60))


@shared_task(name=Job.RUN_TIMERS.value)
def run_timers() -> None:
    """Schedules and idle stops."""
    timers_run(timezone.now())


@shared_task(name=Job.PRUNE_EVENTS.value)
def prune_events() -> None:
    """Events that are older, or more, than the settings keep."""
    run_leased(Job.PRUNE_EVENTS, events_prune, every=timedelta(hours=1))


@shared_task(name=Job.END_RIGHTS.value)
def end_rights() -> None:
    """Grants end by themselves: nothing else would tell the agents of whatever they allowed."""
    documents_end(timezone.now())
