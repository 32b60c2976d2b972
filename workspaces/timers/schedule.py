"""When a cron line is due, in UTC; pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError

# A server that was away makes up for what was due meanwhile, but not for yesterday's.
CATCH_UP: Final = timedelta(hours=6)


def next_due(line: str, now: datetime) -> datetime | None:
    """The first moment after `now`; None for a line that never comes (the 30th of February)."""
    return _first(line, now, reverse=False)


def last_due(line: str, now: datetime) -> datetime | None:
    """The latest moment up to `now`, unless it is too long ago to be made up for."""
    due = _first(line, now + timedelta(seconds=1), reverse=True)
    return due if due is not None and now - due <= CATCH_UP else None


def _first(line: str, now: datetime, *, reverse: bool) -> datetime | None:
    if not line:
        return None
    try:
        found: datetime = next(CronSim(line, now.astimezone(UTC), reverse=reverse))
    except (CronSimError, StopIteration):
        return None
    return found
