"""Checks of start and stop schedules: cron lines of five fields, or a time of day."""

from __future__ import annotations

import re
from typing import Any, Final

from trailer.errors import Invalid
from workspaces.validation.scalars import record, text

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, least, most, words that stand for numbers (counted from `least`).
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
# Every day at that time.
_TIME_OF_DAY: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_TERM: Final = re.compile(r"(?:\*|(\w{1,3})(?:-(\w{1,3}))?)(?:/(\d{1,2}))?", re.ASCII)


def clean_schedule(value: Any, path: str) -> dict[str, str]:
    if value is None:
        return {}
    given = record(value, path, known=("start", "stop"))
    return {
        key: _cron(line, f"{path}.{key}")
        for key, line in sorted(given.items())
        if line is not None and line != ""
    }


def _cron(value: Any, path: str) -> str:
    given = text(value, path, max_length=256).strip()
    if daily := _TIME_OF_DAY.fullmatch(given):
        return f"{int(daily[2])} {int(daily[1])} * * *"
    parts = given.lower().split()
    if len(parts) != len(_FIELDS):
        raise Invalid.field(
            path,
            f"{path} must be a time such as 18:30, or a cron line of five fields, for example "
            "'0 8 * * 1-5'.",
        )
    for part, (name, least, most, words) in zip(parts, _FIELDS, strict=True):
        if not all(_term_fits(term, least, most, words) for term in part.split(",")):
            raise Invalid.field(path, f"{path}: '{part}' is not a valid {name}.")
    return " ".join(parts)


def _term_fits(term: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    match = _TERM.fullmatch(term)
    if match is None:
        return False
    first, last, step = match.groups()
    ends = [_number(end, least, words) for end in (first, last) if end is not None]
    if any(end is None or not least <= end <= most for end in ends):
        return False
    if len(ends) == 2 and (ends[0] or 0) > (ends[1] or 0):
        return False
    if step is None:
        return True
    # A step needs something to step through: a star or a range.
    return len(ends) != 1 and 1 <= int(step) <= most


def _number(text_: str, least: int, words: tuple[str, ...]) -> int | None:
    if text_ in words:
        return words.index(text_) + least
    return int(text_) if text_.isdecimal() else None
