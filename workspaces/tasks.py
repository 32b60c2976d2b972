"""Background jobs that see all apps; each finds its own work in the database."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from trailer.jobs import Job
from workspaces.presence import hosts_fallen_silent


@shared_task(name=Job.MARK_SILENT_HOSTS.value)
def mark_silent_hosts() -> None:
    """Browsers are told when a host falls silent; until then nothing else would tell them."""
    hosts_fallen_silent(timezone.now())
