"""Samples thin out with age: heartbeats to minutes, minutes to hours, and then they go.

The same file runs on PostgreSQL too, see tests/e2e/test_metrics_on_postgresql.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hosts.metrics.families import GPUS, HOSTS
from hosts.metrics.rollup import roll_up
from hosts.metrics.series import Window, series, step_for
from hosts.models import GpuSample, Host, HostSample, RollupMark
from tests.factories import make_host, make_workspace
from workspaces.metrics import WORKSPACES
from workspaces.models import WorkspaceSample
from workspaces.tasks import roll_up_metrics

pytestmark = pytest.mark.django_db

# The beginning of an hour.
START = 1_900_000_800 - 1_900_000_800 % 3600
HOUR, DAY = 3600, 24 * 3600


def samples(host: Host, start: int, seconds: int, every: int = 15, **fields: Any) -> None:
    HostSample.objects.bulk_create(
        HostSample(
            host=host,
            resolution=0,
            at=at,
            **({"cpu_percent": float(at - start), "memory_bytes": at - start} | fields),
        )
        for at in range(start, start + seconds, every)
    )


def rows(resolution: int) -> list[tuple[int, float | None, int | None]]:
    found = HostSample.objects.filter(resolution=resolution).order_by("at")
    return list(found.values_list("at", "cpu_percent", "memory_bytes"))


def test_four_heartbeats_become_one_minute_of_their_mean() -> None:
    samples(make_host(), START, 120)
    roll_up(HOSTS, START + 135)
    assert rows(60) == [(START, 22.5, 23), (START + 60, 82.5, 83)]
    assert len(rows(0)) == 8


def test_a_minute_that_is_not_over_is_left_alone() -> None:
    samples(make_host(), START, 90)
    roll_up(HOSTS, START + 90)
    assert [at for at, *_ in rows(60)] == [START]


def test_a_second_pass_changes_nothing_and_a_late_sample_is_not_lost() -> None:
    host = make_host()
    samples(host, START, 60)
    roll_up(HOSTS, START + 75)
    before = rows(60)
    roll_up(HOSTS, START + 75)
    assert rows(60) == before
    HostSample.objects.create(host=host, resolution=0, at=START + 50, cpu_percent=977.5)
    roll_up(HOSTS, START + 135)
    assert rows(60)[0][:2] == (START, (22.5 * 4 + 977.5) / 5)


def test_minutes_become_hours_and_passes_that_were_missed_are_made_up_for() -> None:
    samples(make_host(), START, 3 * HOUR, every=60, cpu_percent=10.0, memory_bytes=7)
    roll_up(HOSTS, START + 3 * HOUR + 15)
    assert rows(3600) == [(START + n * HOUR, 10.0, 7) for n in range(3)]
    # The raw samples of the first hour are old enough to go, those of the others not.
    assert rows(0)[0][0] == START + HOUR + 60


def test_unknown_values_are_no_zeros() -> None:
    host = make_host()
    samples(host, START, 30, cpu_percent=None)
    samples(host, START + 30, 15, cpu_percent=8.0)
    roll_up(HOSTS, START + 75)
    assert rows(60)[0][1] == 8.0


def test_what_is_old_goes_by_its_hosts_own_retention() -> None:
    short = make_host(metrics_retention_days=1)
    long = make_host(metrics_retention_days=30)
    now = START + 40 * DAY
    for host in (short, long):
        HostSample.objects.bulk_create(
            HostSample(host=host, resolution=resolution, at=now - age)
            for resolution, age in ((60, 20 * HOUR), (60, 30 * HOUR), (60, 3 * DAY), (0, 3 * HOUR))
        )
        HostSample.objects.bulk_create(
            HostSample(host=host, resolution=3600, at=now - days * DAY - 7) for days in (0, 2, 35)
        )
    RollupMark.objects.create(family="host", resolution=60, until=now - 60)
    RollupMark.objects.create(family="host", resolution=3600, until=now - 3600)
    roll_up(HOSTS, now)

    def ages(host: Host, resolution: int) -> list[int]:
        found = HostSample.objects.filter(host=host, resolution=resolution)
        return sorted((now - at) // HOUR for at in found.values_list("at", flat=True))

    assert (ages(short, 0), ages(long, 0)) == ([], [])
    assert (ages(short, 60), ages(long, 60)) == ([20], [20, 30])
    assert (ages(short, 3600), ages(long, 3600)) == ([0], [0, 48])


def test_raw_samples_wait_until_they_are_gathered() -> None:
    """A pass after days of standstill must not throw away what no minute holds yet."""
    samples(make_host(metrics_retention_days=30), START, 60)
    roll_up(HOSTS, START + 20 * DAY)
    assert [at for at, *_ in rows(3600)] == [START]


def test_gpus_and_workspaces_are_gathered_each_for_itself() -> None:
    host = make_host()
    first, second = make_workspace(host), make_workspace(host)
    for workspace, cpu in ((first, 10.0), (second, 90.0)):
        WorkspaceSample.objects.create(
            workspace=workspace, resolution=0, at=START, cpu_percent=cpu
        )
    for gpu, use in (("GPU-1", 1.0), ("GPU-2", 99.0)):
        GpuSample.objects.create(
            host=host, gpu=gpu, resolution=0, at=START, utilization_percent=use
        )
    for family in (GPUS, WORKSPACES):
        roll_up(family, START + 75)
    minutes = WorkspaceSample.objects.filter(resolution=60)
    found = dict(minutes.values_list("workspace_id", "cpu_percent"))
    assert found == {first.pk: 10.0, second.pk: 90.0}
    cards = GpuSample.objects.filter(resolution=60)
    assert dict(cards.values_list("gpu", "utilization_percent")) == {"GPU-1": 1.0, "GPU-2": 99.0}


def test_the_job_takes_the_same_few_statements_for_many_workspaces() -> None:
    roll_up_metrics()
    host = make_host()

    def statements() -> int:
        RollupMark.objects.update(until=0)
        with CaptureQueriesContext(connection) as captured:
            roll_up_metrics()
        return len(captured)

    few = statements()
    for number in range(20):
        workspace = make_workspace(host)
        WorkspaceSample.objects.create(workspace=workspace, resolution=0, at=START - number)
    assert statements() == few


@pytest.mark.parametrize(
    ("span", "seconds", "base"),
    [(HOUR, 8, 0), (6 * HOUR, 60, 60), (DAY, 180, 60), (7 * DAY, 3600, 3600)],
)
def test_a_span_is_answered_in_a_fitting_resolution(span: int, seconds: int, base: int) -> None:
    step = step_for(Window(since=START - span, until=START), START)
    assert (step.seconds, step.base) == (seconds, base)
    assert span / step.seconds <= 500


def test_a_series_joins_hours_minutes_and_heartbeats_without_a_gap_or_a_double() -> None:
    host = make_host()
    end = START + 5 * HOUR + 150
    samples(host, START, 5 * HOUR + 150, every=30, cpu_percent=50.0, memory_bytes=9)
    for now in (START + HOUR, START + 4 * HOUR, end):
        roll_up(HOSTS, now)
    for span in (10 * HOUR, 5 * DAY):
        window = Window(since=end - span, until=end)
        step = step_for(window, end)
        points = series(HOSTS, window, step, {"host": host})
        times = [int(point["at"].timestamp()) for point in points]
        assert times == list(range(START, end - end % step.seconds + 1, step.seconds))
        assert {(point["cpu_percent"], point["memory_bytes"]) for point in points} == {(50.0, 9)}
