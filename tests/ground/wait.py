"""Waiting for a condition: the only way in which tests let time pass."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    predicate: Callable[[], T],
    timeout: float = 10.0,
    message: str = "the condition did not come true",
    interval: float = 0.05,
) -> T:
    """Call `predicate` until it returns something true, and return that.

    An AssertionError from it counts as "not yet", so that it may hold plain asserts; when the
    time is up that error, or the last value, is part of the failure.
    """
    deadline = time.monotonic() + timeout
    while True:
        reason = ""
        try:
            value = predicate()
            if value:
                return value
            reason = f"last value: {value!r}"
        except AssertionError as error:
            reason = f"last failure: {error}"
        if time.monotonic() >= deadline:
            raise AssertionError(f"{message} within {timeout:g} s ({reason})")
        time.sleep(interval)


def always(
    predicate: Callable[[], object], during: float, message: str, interval: float = 0.05
) -> None:
    """Fail as soon as `predicate` returns something false within the given seconds."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        value = predicate()
        assert value, f"{message} (value: {value!r})"
        time.sleep(interval)
