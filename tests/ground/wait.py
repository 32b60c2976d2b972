"""Waiting for a condition: the only way in which tests let time pass."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Of the time spent waiting, a predicate may take a tenth; and nothing is seen later than this.
PAUSE_PER_QUESTION = 9
LONGEST_PAUSE_S = 0.4


def eventually(
    predicate: Callable[[], T],
    timeout: float = 10.0,
    message: str = "the condition did not come true",
    interval: float = 0.05,
) -> T:
    """Call `predicate` until it returns something true, and return that.

    An AssertionError from it counts as "not yet", so that it may hold plain asserts; when the
    time is up that error, or the last value, is part of the failure. The dearer the question, the
    longer the pauses: asking must not take the machine from what is waited for.
    """
    deadline = time.monotonic() + timeout
    while True:
        reason = ""
        asked = time.monotonic()
        try:
            value = predicate()
            if value:
                return value
            reason = f"last value: {value!r}"
        except AssertionError as error:
            reason = f"last failure: {error}"
        answered = time.monotonic()
        if answered >= deadline:
            raise AssertionError(f"{message} within {timeout:g} s ({reason})")
        pause = min((answered - asked) * PAUSE_PER_QUESTION, LONGEST_PAUSE_S)
        time.sleep(max(interval, pause))


def always(
    predicate: Callable[[], object], during: float, message: str, interval: float = 0.05
) -> None:
    """Fail as soon as `predicate` returns something false within the given seconds."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        value = predicate()
        assert value, f"{message} (value: {value!r})"
        time.sleep(interval)
