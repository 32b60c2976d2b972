"""Where on a cycle's line its steps lie."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hosts.models import Cycle
from trailer.pages.timeline import lanes_of

START = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


def cycle(*steps: dict[str, Any], seconds: float = 10.0) -> Cycle:
    return Cycle(
        started_at=START, finished_at=START + timedelta(seconds=seconds), steps=list(steps)
    )


def step(after: float, took: float, outcome: str = "ok") -> dict[str, Any]:
    began = (START + timedelta(seconds=after)).isoformat()
    return {"step": "x", "started_at": began, "duration_ms": took, "outcome": outcome}


def test_steps_lie_where_they_began_and_are_as_long_as_they_took() -> None:
    (lane,) = lanes_of([cycle(step(5, 2500, "failed"), step(0, 5000))])
    assert [(bar.left, bar.width, bar.tone) for bar in lane.bars] == [
        ("0.00%", "50.00%", "ok"),
        ("50.00%", "25.00%", "failed"),
    ]
    assert (lane.failed, lane.duration) == (1, "10.0 s")
    assert [bar.duration for bar in lane.bars] == ["5.0 s", "2.5 s"]


def test_a_step_that_outlives_its_cycle_makes_the_line_longer() -> None:
    (lane,) = lanes_of([cycle(step(0, 20_000), seconds=1)])
    assert (lane.bars[0].left, lane.bars[0].width) == ("0.00%", "100.00%")
    assert lane.duration == "20.0 s"


def test_no_bar_is_invisible_or_outside_of_its_line() -> None:
    instant, before = step(10, 0), step(-3600, 1)
    (lane,) = lanes_of([cycle(instant, before)])
    for bar in lane.bars:
        left, width = float(bar.left[:-1]), float(bar.width[:-1])
        assert width >= 0.5
        assert 0 <= left <= 100 - width


def test_rubbish_in_a_report_breaks_no_page() -> None:
    (lane,) = lanes_of([cycle({"started_at": "soon", "duration_ms": "long"}, {}, seconds=0)])
    assert [bar.tone for bar in lane.bars] == ["other", "other"]
    assert lanes_of([cycle()])[0].bars == []
