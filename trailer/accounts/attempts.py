"""Counting attempts in a shared cache, so that a limit holds over all web processes."""

from __future__ import annotations

import ipaddress
import time
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from agent.protocol import counting
from trailer.errors import Throttled
from trailer.secrets import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WINDOW: Final = 60
# Guesses at one name, from all addresses together: so many an hour are free, then there is a
# pause before each, twice as long every time. It ends, so nobody is kept out for good.
_SPREAD_WINDOW: Final = 3600
SPREAD_FREE: Final = 20
_LONGEST_PAUSE: Final = 60


class Attempts:
    """`limits`: what is counted, each with how many tries a minute it may take."""

    def __init__(self, limits: Mapping[str, int], noun: str = "failed sign-ins") -> None:
        # A digest, so that any text makes a valid key.
        self._limits = {f"login:{digest(what)}": limit for what, limit in limits.items()}
        self._noun = noun

    def count(self) -> None:
        """Before anything is looked at: parallel guesses don't slip past the limit."""
        for key, limit in self._limits.items():
            if counted(key) > limit:
                now = time.time()
                since = cache.get(f"{key}:since", now)
                wait = max(1, int(since + _WINDOW - now) + 1)
                raise Throttled(
                    f"Too many {self._noun}. Try again in {counting.counted(wait, 'second')}.",
                    retry_after=wait,
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


class SpreadAttempts:
    """Guesses at one name from many addresses. `is_known` says whether this place may pass: it is
    asked only when it matters, and has the limits of its address as before."""

    def __init__(self, username: str, is_known: Callable[[], bool]) -> None:
        self._key = f"spread:{digest(username.casefold())}"
        self._is_known = is_known

    def count(self) -> None:
        over = counted(self._key, _SPREAD_WINDOW) - SPREAD_FREE
        if over <= 0 or self._is_known():
            return
        pause = min(2 ** min(over, 10), _LONGEST_PAUSE)
        # One try per pause, whoever comes first: adding it is what decides between processes.
        turn = f"{self._key}:turn"
        if not cache.add(turn, time.time() + pause, timeout=pause):
            wait = max(1, int(cache.get(turn, 0) - time.time()) + 1)
            raise Throttled(
                "Too many failed sign-ins for this name. Try again in "
                f"{counting.counted(wait, 'second')}, or from where you signed in before.",
                retry_after=wait,
            )

    def forget(self) -> None:
        """After a success this one try does not count; the others were not its user's."""
        try:
            cache.decr(self._key)
        except ValueError:
            # Its window ended meanwhile.
            return


def neighbourhood(address: str) -> str:
    """What one guesser has: an address, of IPv6 a whole network of them."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))


def counted(key: str, window: int = _WINDOW) -> int:
    """How many there were, with this one, since the first of them at most a window ago."""
    if cache.add(key, 0, timeout=window):
        cache.set(f"{key}:since", time.time(), timeout=window)
    try:
        return cache.incr(key)
    except ValueError:
        # The window ended between the two calls: this is the first attempt of the next one.
        cache.set(key, 1, timeout=window)
        return 1
