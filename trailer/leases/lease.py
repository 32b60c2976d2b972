"""Runs a periodic job at most once per period, whoever asks and however often.

Two beats, a message that Redis delivers twice, a worker that was killed over its work: the row in
the database decides. Messages that got lost are replaced by the next tick.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F, Q
from django.utils import timezone

from trailer.leases.models import JobLease

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# Ticks of one beat come a little early or late.
_EARLY = 0.8
# A run that failed is tried again after so long.
_AGAIN = timedelta(minutes=5)


def run_leased(
    job: str,
    work: Callable[[datetime], object],
    *,
    every: timedelta,
    at_most: timedelta = timedelta(minutes=10),
    now: datetime | None = None,
) -> bool:
    """False when another run of this period is under way or done. `at_most`: after that a run
    counts as dead. One that died or failed was not the period's: it is due again soon."""
    now = now or timezone.now()
    holder = uuid.uuid4()
    if not _take(job, holder, now, every=every, at_most=at_most):
        return False
    free_from = now + min(every * _EARLY, _AGAIN)
    try:
        work(now)
        free_from = now
    finally:
        JobLease.objects.filter(pk=job, holder=holder).update(held_until=free_from)
    return True


def _take(
    job: str, holder: uuid.UUID, now: datetime, *, every: timedelta, at_most: timedelta
) -> bool:
    _, is_first = JobLease.objects.get_or_create(
        pk=job, defaults={"holder": holder, "held_until": now + at_most, "begun_at": now}
    )
    if is_first:
        return True
    free = Q(held_until__lte=now)
    is_over = Q(begun_at__lte=now - every * _EARLY)
    # Only a run that was done gives its lease back as of its beginning.
    undone = Q(held_until__gt=F("begun_at"))
    # By a clock that was ahead and was put right since: to wait for it could take days.
    unreal = Q(held_until__gt=now + at_most + _AGAIN)
    return bool(
        JobLease.objects.filter(free & (is_over | undone) | unreal, pk=job).update(
            holder=holder, held_until=now + at_most, begun_at=now
        )
    )
