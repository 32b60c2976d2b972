"""Enrolment is the one agent route without a credential, so guesses are counted per address."""

from __future__ import annotations

from django.core.cache import cache

from trailer.errors import Throttled

_PER_MINUTE = 20


def enrolment_throttle(address: str) -> None:
    key = f"enrol:{address}"
    cache.add(key, 0, timeout=60)
    if cache.incr(key) > _PER_MINUTE:
        raise Throttled("Too many enrolments from this address. Wait a minute.", retry_after=60)
