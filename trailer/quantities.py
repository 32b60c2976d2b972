"""Sizes and durations as people read them; a size prints back to exactly the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

_UNITS = (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))


def exact_size(size: int | None) -> str:
    """For inputs: the largest unit that needs at most two decimals, else plain bytes."""
    if size is None:
        return ""
    for unit, factor in _UNITS:
        if size >= factor and size * 100 % factor == 0:
            return f"{size / factor:g} {unit}"
    return str(size)


def rough_size(size: int | None) -> str:
    """For reading: three digits are enough."""
    if size is None:
        return "–"
    for unit, factor in _UNITS:
        if size >= factor:
            return (
                f"{size / factor:.3g} {unit}"
                if size < 1000 * factor
                else f"{size // factor} {unit}"
            )
    return f"{size} B"


def rough_duration(length: timedelta | None) -> str:
    if length is None:
        return "–"
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
