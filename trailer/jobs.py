"""Dispatch of background jobs: services name a job, tasks implement it, no import cycle."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import transaction

from trailer.celery import app


class Job(StrEnum):
    MARK_SILENT_HOSTS = "workspaces.mark_silent_hosts"
    PRUNE_EXPIRED = "accounts.prune_expired"
    ROLL_UP_METRICS = "workspaces.roll_up_metrics"
    RETRY_FAILED_PULLS = "images.retry_failed_pulls"


def enqueue(job: Job, **arguments: Any) -> None:
    """After commit: a worker must never look for a row that is not there yet."""
    transaction.on_commit(lambda: app.send_task(job.value, kwargs=arguments))
