"""Cycles as a waterfall: where on the line of a cycle each of its steps lies. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hosts.services.observed import reported_time
from trailer.quantities import rough_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hosts.models import Cycle

# Narrower bars would not be seen.
_NARROWEST = 0.6
_OUTCOMES = frozenset({"ok", "failed", "skipped", "deferred"})


@dataclass(frozen=True)
class Bar:
    """One step; places are percents of the cycle's length, as text for the drawing."""

    step: dict[str, Any]
    left: str
    width: str
    tone: str
    duration: str


@dataclass(frozen=True)
class Lane:
    """One cycle with its steps in the order in which they began."""

    cycle: Cycle
    bars: list[Bar]
    duration: str
    failed: int


def lanes_of(cycles: Iterable[Cycle]) -> list[Lane]:
    return [_lane(cycle) for cycle in cycles]


def _lane(cycle: Cycle) -> Lane:
    placed = sorted((_placed(cycle, step) for step in cycle.steps), key=lambda item: item[0])
    length = (cycle.finished_at - cycle.started_at).total_seconds()
    # Steps of work that outlives its cycle may end after it.
    length = max([length, 0.001, *(start + took for start, took, _ in placed)])
    return Lane(
        cycle=cycle,
        bars=[_bar(start / length, took / length, took, step) for start, took, step in placed],
        duration=rough_duration(timedelta(seconds=length)),
        failed=sum(step.get("outcome") == "failed" for _, _, step in placed),
    )


def _placed(cycle: Cycle, step: dict[str, Any]) -> tuple[float, float, dict[str, Any]]:
    """Seconds from the cycle's beginning, both by the agent's clock; and how long it took."""
    began = reported_time(str(step.get("started_at", "")))
    start = (began - cycle.started_at).total_seconds() if began is not None else 0.0
    took = step.get("duration_ms", 0)
    return max(0.0, start), max(0, took) / 1000 if isinstance(took, int | float) else 0.0, step


def _bar(start: float, share: float, took: float, step: dict[str, Any]) -> Bar:
    width = min(100.0, max(_NARROWEST, share * 100))
    left = min(start * 100, 100 - width)
    outcome = str(step.get("outcome", ""))
    return Bar(
        step=step,
        left=f"{left:.2f}%",
        width=f"{width:.2f}%",
        tone=outcome if outcome in _OUTCOMES else "other",
        duration=rough_duration(timedelta(seconds=took)),
    )
