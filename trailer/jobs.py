"""Dispatch of background jobs: services name a job, tasks implement it, no import cycle."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Any

from django.db import transaction

from trailer.celery import app

logger = logging.getLogger(__name__)


class Job(StrEnum):
    MARK_SILENT_HOSTS = "workspaces.mark_silent_hosts"
    PRUNE_EXPIRED = "accounts.prune_expired"
    ROLL_UP_METRICS = "workspaces.roll_up_metrics"
    RUN_TIMERS = "workspaces.run_timers"
    PRUNE_EVENTS = "workspaces.prune_events"
    END_RIGHTS = "workspaces.end_rights"
    RETRY_FAILED_PULLS = "images.retry_failed_pulls"
    ORDER_MAINTENANCE = "hosts.order_maintenance"
    ADVANCE_ROLLOUTS = "hosts.advance_rollouts"
    WORK_STACKS = "stacks.work"
    SEAL_AUDIT = "audit.seal"
    VERIFY_AUDIT = "audit.verify"
    CHECK_STACKS = "stacks.check_all"


def enqueue(job: Job, *, delay: float = 0.0, **arguments: Any) -> None:
    """After commit: a worker must never look for a row that is not there yet.

    A broker that is away costs time only: every job is also found by the schedule.
    """
    transaction.on_commit(lambda: send(job, delay=delay, **arguments))


def send(job: Job, *, delay: float = 0.0, **arguments: Any) -> None:
    """At once, for whoever has no transaction."""
    try:
        app.send_task(job.value, kwargs=arguments, countdown=delay or None, retry=False)
    except Exception:
        logger.warning("job not sent", extra={"job": job.value}, exc_info=True)
