"""Time as an input: the only place of the agent that reads a clock or sleeps."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime


def monotonic() -> float:
    return time.monotonic()


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp() -> str:
    """The wall clock in the wire's form; shown to people, never used for ordering."""
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def full_jitter(seconds: float) -> float:
    """Between a tenth and all of `seconds`, so that a thousand agents never retry in step."""
    return random.uniform(seconds / 10, seconds)  # noqa: S311  spreads load, guards nothing


class Backoff:
    """Growing, jittered delays for one endpoint; a success starts over."""

    def __init__(self, *, first: float = 1.0, limit: float = 60.0) -> None:
        self._first = first
        self._limit = limit
        self._failures = 0

    def next_delay(self) -> float:
        delay = min(self._limit, self._first * 2**self._failures)
        self._failures = min(self._failures + 1, 30)
        return full_jitter(delay)

    def reset(self) -> None:
        self._failures = 0
