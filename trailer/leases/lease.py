"""Runs a periodic job at most once per period, whoever asks and however often.

Two beats, a message that Redis delivers twice, a worker that was killed over its work: the row in
the database decides. Messages that got lost are replaced by the next tick.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from trailer.leases.models import JobLease

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# Ticks of one beat come a little early or late.
_EARLY = 0.8


def run_leased(
    job: str,
    work: Callable[[datetime], object],
    *,
    every: timedelta,
    at_most: timedelta = timedelta(minutes=10),
    now: datetime | None = None,
) -> bool:
    """False when another run of this period is under way or done. `at_most`: after that a run
    counts as dead."""
    now = now or timezone.now()
    holder = uuid.uuid4()
    if not _take(job, holder, now, every=every, at_most=at_most):
        return False
    try:
        work(now)
    finally:
        JobLease.objects.filter(pk=job, holder=holder).update(held_until=now)
    return True


def _take(
    job: str, holder: uuid.UUID, now: datetime, *, every: timedelta, at_most: timedelta
) -> bool:
    _, is_first = JobLease.objects.get_or_create(
        pk=job, defaults={"holder": holder, "held_until": now + at_most, "begun_at": now}
    )
    if is_first:
        return True
    return bool(
        JobLease.objects.filter(
            pk=job, held_until__lte=now, begun_at__lte=now - every * _EARLY
        ).update(holder=holder, held_until=now + at_most, begun_at=now)
    )
