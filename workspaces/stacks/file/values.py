"""Durations, sizes and numbers as Compose writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item

_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:us|ms|s|m|h|d))+")
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")
_SECONDS: Final = {
    "us": Decimal("0.000001"),
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86_400),
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_NUMBER: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")
_DAY: Final = 86_400


def seconds(item: Item, *, most: int = _DAY) -> float:
    """`1m30s`, `500ms`; a bare number has no unit and is refused, as by Compose."""
    text = item.plain_text().strip()
    if len(text) > 64 or not _DURATION.fullmatch(text):
        raise item.wrong("must be a duration with its unit, for example 90s or 1m30s")
    total = sum(
        (Decimal(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text)),
        Decimal(0),
    )
    if total > most:
        raise item.wrong(f"may be at most {most} seconds")
    return float(total)


def whole_seconds(item: Item, *, most: int) -> int:
    """Rounded up: a wait is never shorter than what was asked for."""
    return int(-(-seconds(item, most=most) // 1))


def size(item: Item, *, least: int) -> int:
    """`512m`, `1gb`, `1073741824`: units are powers of 1024, as in Compose."""
    text = item.plain_text().strip()
    match = _SIZE.fullmatch(text) if len(text) <= 32 else None
    if not match:
        raise item.wrong("must be a size, for example 512m or 2g")
    total = int(Decimal(match[1]) * 1024 ** _POWERS[match[2].lower()])
    if not least <= total < 2**63:
        raise item.wrong(f"must be at least {least} bytes")
    return total


def number(item: Item, *, least: float, most: float) -> float:
    text = item.plain_text().strip()
    if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
        raise item.wrong(f"must be a number between {least:g} and {most:g}, for example 0.5")
    return round(float(text), 3)
