"""Background jobs of images; each finds its own work in the database."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from images.services.retries import pulls_retry
from trailer.jobs import Job


@shared_task(name=Job.RETRY_FAILED_PULLS.value)
def retry_failed_pulls() -> None:
    pulls_retry(timezone.now())
