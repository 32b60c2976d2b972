"""Background jobs of accounts."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from trailer.accounts.services import expired_prune
from trailer.jobs import Job
from trailer.leases.lease import run_leased


@shared_task(name=Job.PRUNE_EXPIRED.value)
def prune_expired() -> None:
    """Sign-in tokens and sessions that nobody can use any more."""
    run_leased(Job.PRUNE_EXPIRED, lambda _: expired_prune(), every=timedelta(hours=1))
