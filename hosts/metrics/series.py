"""Samples of one subject over a span, in a resolution that gives a chart enough and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Avg, F, FloatField, Q

from hosts.metrics.families import HOUR, MINUTE, RAW
from hosts.metrics.rollup import MINUTES_KEPT, RAW_KEPT
from hosts.models import RollupMark

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from hosts.metrics.families import Family

POINTS: Final = 500
# What was about to be thinned out when the request was made may still be read as it was.
_SLACK: Final = 60


@dataclass(frozen=True)
class Window:
    """Seconds since 1970; `resolution` is the caller's wish, 0 for none."""

    since: int
    until: int
    resolution: int = 0


@dataclass(frozen=True)
class Step:
    """`base` is the resolution of the rows that are read, `seconds` that of the answer."""

    base: int
    seconds: int


def step_for(window: Window, now: int) -> Step:
    """The finest rows that still exist over the whole span, at most some 500 of them."""
    age = now - window.since
    base = RAW if age <= RAW_KEPT + _SLACK else MINUTE if age <= MINUTES_KEPT + _SLACK else HOUR
    unit = base or 1
    wanted = max((window.until - window.since) / POINTS, window.resolution, 1)
    return Step(base, unit * math.ceil(wanted / unit))


def series(
    family: Family, window: Window, step: Step, subject: dict[str, Any]
) -> list[dict[str, Any]]:
    """Oldest first. The newest end is not gathered yet and is taken from finer rows."""
    rows: QuerySet[Model] = family.model._default_manager.filter(
        _rows_of(family, step.base), **subject, at__gte=window.since, at__lt=window.until
    )
    floats = {f.attname: isinstance(f, FloatField) for f in family.values}
    found = (
        rows.annotate(bucket=F("at") - F("at") % step.seconds)
        .values("bucket")
        .annotate(**{f"mean_{name}": Avg(name) for name in floats})
        .order_by("bucket")
    )
    return [
        {
            "at": datetime.fromtimestamp(row["bucket"], UTC),
            **{name: _number(row[f"mean_{name}"], floats[name]) for name in floats},
        }
        for row in found
    ]


def _rows_of(family: Family, base: int) -> Q:
    if base == RAW:
        return Q(resolution=RAW)
    marks = dict(RollupMark.objects.filter(family=family.name).values_list("resolution", "until"))
    minutes = marks.get(MINUTE, 0)
    fresh = Q(resolution=RAW, at__gte=minutes)
    if base == MINUTE:
        return Q(resolution=MINUTE, at__lt=minutes) | fresh
    hours = marks.get(HOUR, 0)
    recent = Q(resolution=MINUTE, at__gte=hours, at__lt=minutes)
    return Q(resolution=HOUR, at__lt=hours) | recent | fresh


def _number(mean: Any, is_float: bool) -> float | int | None:
    if mean is None:
        return None
    return round(float(mean), 2) if is_float else round(mean)
