"""Background jobs of accounts."""

from __future__ import annotations

from celery import shared_task

from trailer.accounts.services import expired_prune
from trailer.jobs import Job


@shared_task(name=Job.PRUNE_EXPIRED.value)
def prune_expired() -> None:
    """Sign-in tokens and sessions that nobody can use any more."""
    expired_prune()
