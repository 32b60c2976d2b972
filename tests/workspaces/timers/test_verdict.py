"""When a workspace would stop and why: tables over a pure function."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from workspaces.timers.schedule import last_due, next_due
from workspaces.timers.verdict import Evidence, Use, Verdict, decide, use_words

NOW = datetime(2026, 11, 16, 18, 30, tzinfo=UTC)
WATCHED = Evidence(idle_minutes=60, watched_since=NOW - timedelta(hours=3))


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (Use(), ""),
        (Use(connections=0, cpu_percent=4.9, network_rate=1023, gpu_percent=4.9), ""),
        (Use(connections=1), "1 open connection"),
        (Use(connections=0.2), "1 open connection"),
        (Use(connections=3), "3 open connections"),
        (Use(cpu_percent=5), "the processor at 5 %"),
        (Use(network_rate=2048), "network traffic of 2 KiB/s"),
        (Use(gpu_percent=80), "a GPU at 80 %"),
        (Use(terminals=True), "an open terminal"),
    ],
)
def test_what_counts_as_use(use: Use, words: str) -> None:
    assert use_words(use) == words


def test_it_would_stop_when_it_was_idle_long_enough_and_says_since_when() -> None:
    verdict = decide(replace(WATCHED, used_at=NOW - minutes(50)), NOW)
    assert (verdict.kind, verdict.idle_since) == ("idle", NOW - minutes(50))
    assert verdict.stops_at == datetime(2026, 11, 16, 18, 40, tzinfo=UTC)
    assert (verdict.warns, verdict.stops) == (True, False)
    assert verdict.because == (
        "no connection, and no work of processor, network or GPU since 17:40 UTC "
        "(idle stop after 60 min)"
    )


@pytest.mark.parametrize(
    ("evidence", "stops_at"),
    [
        (replace(WATCHED, used_at=NOW - minutes(20)), NOW + minutes(40)),
        # Nobody watched before: idleness that nobody saw does not count.
        (replace(WATCHED, watched_since=NOW - minutes(5)), NOW + minutes(55)),
        (replace(WATCHED, started_at=NOW - minutes(10)), NOW + minutes(50)),
        (replace(WATCHED, extended_until=NOW + minutes(90)), NOW + minutes(90)),
        (replace(WATCHED, extended_until=NOW - minutes(500)), NOW - minutes(120)),
        # Whatever comes first; an extension holds both.
        (replace(WATCHED, used_at=NOW - minutes(2), stop_next=NOW + minutes(7)), NOW + minutes(7)),
        (Evidence(stop_due=NOW - minutes(1), extended_until=NOW + minutes(9)), NOW + minutes(9)),
    ],
)
def test_the_moment_of_the_stop(evidence: Evidence, stops_at: datetime) -> None:
    verdict = decide(evidence, NOW)
    assert (verdict.stops_at, verdict.stops) == (stops_at, stops_at <= NOW)


def test_what_is_in_use_or_unmeasured_is_never_stopped_for_being_idle() -> None:
    busy = decide(replace(WATCHED, used_at=NOW - minutes(1), used_by="2 open connections"), NOW)
    assert (busy.in_use, busy.stops_at) == (True, None)
    assert busy.because == "it is in use: 2 open connections"
    blind = decide(replace(WATCHED, watched_since=None), NOW)
    assert (blind.stops_at, blind.stops) == (None, False)
    assert "nobody can tell" in blind.because
    assert decide(Evidence(), NOW) == Verdict()


def test_a_short_idle_time_warns_at_its_half() -> None:
    short = Evidence(idle_minutes=4, watched_since=NOW - minutes(1.9))
    assert not decide(short, NOW).warns
    assert decide(short, NOW + minutes(0.2)).warns


@pytest.mark.parametrize(
    ("line", "last", "following"),
    [
        ("30 18 * * *", NOW, NOW + timedelta(days=1)),
        ("0 18 * * *", NOW - minutes(30), NOW + minutes(23 * 60 + 30)),
        ("0 8 * * 1-5", None, datetime(2026, 11, 17, 8, tzinfo=UTC)),
        ("*/20 * * * *", NOW - minutes(10), NOW + minutes(10)),
        ("0 18 * * mon", NOW - minutes(30), NOW + timedelta(days=7) - minutes(30)),
        ("", None, None),
        ("0 0 30 2 *", None, None),
        ("not a line", None, None),
    ],
)
def test_when_a_line_was_due_and_will_be(
    line: str, last: datetime | None, following: datetime | None
) -> None:
    assert (last_due(line, NOW), next_due(line, NOW)) == (last, following)
