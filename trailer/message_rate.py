"""How often one socket may speak: a short burst is a page that opens, more is a flood."""

from __future__ import annotations

from collections import deque


class MessageRate:
    """At most `most` messages within any `seconds`."""

    def __init__(self, *, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._heard: deque[float] = deque(maxlen=most)

    def allows(self, now: float) -> bool:
        """Counts the message at hand; `now` is of a clock that never goes back."""
        is_full = len(self._heard) == self._heard.maxlen
        if is_full and now - self._heard[0] < self._seconds:
            return False
        self._heard.append(now)
        return True
