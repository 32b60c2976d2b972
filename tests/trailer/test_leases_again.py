"""A run that failed, died or was begun by a wrong clock does not count as the period's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trailer.leases.lease import run_leased
from trailer.leases.models import JobLease

pytestmark = pytest.mark.django_db
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ask(now: datetime) -> bool:
    return run_leased("a job", lambda _: None, every=DAY, at_most=HOUR, now=now)


def test_a_daily_run_that_failed_is_due_again_soon_but_not_at_once() -> None:
    def fail(_: datetime) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_leased("a job", fail, every=DAY, at_most=HOUR, now=NOON)
    assert not ask(NOON + MINUTE)
    assert ask(NOON + 5 * MINUTE)
    assert not ask(NOON + HOUR)
    assert ask(NOON + DAY)


def test_a_daily_run_that_was_killed_is_due_again_when_its_lease_ends() -> None:
    assert ask(NOON)
    # A process that is killed cannot give its lease back.
    JobLease.objects.update(held_until=NOON + HOUR)
    assert not ask(NOON + HOUR - MINUTE)
    assert ask(NOON + HOUR)
    assert not ask(NOON + 2 * HOUR)


def test_a_run_from_the_future_holds_nothing_up() -> None:
    """The clock was a month ahead when the machine started."""
    assert ask(NOON + 30 * DAY)
    assert ask(NOON)
    assert not ask(NOON + HOUR)
    # Nor does a lease that nobody can have taken.
    JobLease.objects.update(held_until=NOON + 30 * DAY)
    assert ask(NOON + 2 * HOUR)
    # Two servers whose clocks are a little apart are not that.
    assert not ask(NOON + HOUR)
