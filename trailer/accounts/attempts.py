"""Counting attempts in a shared cache, so that a limit holds over all web processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from trailer.errors import Throttled
from trailer.secrets import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

_WINDOW: Final = 60


class Attempts:
    """`limits`: what is counted, each with how many tries a minute it may take."""

    def __init__(self, limits: Mapping[str, int], noun: str = "failed sign-ins") -> None:
        # A digest, so that any text makes a valid key.
        self._limits = {f"login:{digest(what)}": limit for what, limit in limits.items()}
        self._noun = noun

    def count(self) -> None:
        """Before anything is looked at: parallel guesses don't slip past the limit."""
        for key, limit in self._limits.items():
            if _counted(key) > limit:
                now = time.time()
                since = cache.get(f"{key}:since", now)
                wait = max(1, int(since + _WINDOW - now) + 1)
                raise Throttled(
                    f"Too many {self._noun}. Try again in {wait} seconds.", retry_after=wait
                )

    def forget(self) -> None:
        """After a success: the first count starts anew, the others lose this one try."""
        first, *others = self._limits
        cache.delete_many([first, f"{first}:since"])
        for key in others:
            try:
                cache.decr(key)
            except ValueError:
                # Its window ended meanwhile.
                continue


def _counted(key: str) -> int:
    if cache.add(key, 0, timeout=_WINDOW):
        cache.set(f"{key}:since", time.time(), timeout=_WINDOW)
    try:
        return cache.incr(key)
    except ValueError:
        # The window ended between the two calls: this is the first attempt of the next one.
        cache.set(key, 1, timeout=_WINDOW)
        return 1
