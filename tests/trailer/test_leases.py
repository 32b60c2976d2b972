"""Background jobs run once per period, whoever asks and whoever dies over them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from kombu.exceptions import OperationalError

from trailer import jobs
from trailer.celery import app
from trailer.leases.lease import run_leased
from trailer.leases.models import JobLease

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ask(done: list[datetime], now: datetime) -> bool:
    return run_leased("a job", done.append, every=MINUTE, at_most=3 * MINUTE, now=now)


@pytest.mark.django_db
def test_two_beats_do_the_work_once_per_period() -> None:
    done: list[datetime] = []
    for tick in range(4):
        now = NOON + tick * MINUTE
        assert ask(done, now)
        assert not ask(done, now + timedelta(seconds=1))
    assert len(done) == 4


@pytest.mark.django_db
def test_a_killed_worker_delays_the_work_until_its_lease_ends() -> None:
    done: list[datetime] = []

    def die(_: datetime) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        run_leased("a job", die, every=MINUTE, at_most=3 * MINUTE, now=NOON)
    # A process that is killed cannot give its lease back.
    JobLease.objects.update(held_until=NOON + 3 * MINUTE)
    assert not ask(done, NOON + 2 * MINUTE)
    assert ask(done, NOON + 3 * MINUTE)


@pytest.mark.django_db
def test_a_failed_run_gives_its_lease_back() -> None:
    done: list[datetime] = []

    def fail(_: datetime) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_leased("a job", fail, every=MINUTE, now=NOON)
    assert ask(done, NOON + MINUTE)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_one_works() -> None:
    done: list[datetime] = []
    start = threading.Barrier(4)

    def worker() -> None:
        start.wait()
        ask(done, NOON)
        connection.close()

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_is_away_fails_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(name: str, **_: object) -> None:
        asked.append(name)
        raise OperationalError("connection refused")

    monkeypatch.setattr(app, "send_task", refuse)
    jobs.enqueue(jobs.Job.PRUNE_EXPIRED)
    assert asked == ["accounts.prune_expired"]
