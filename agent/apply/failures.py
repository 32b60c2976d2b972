"""Per-object backoff: 10 s, doubling to 300 s, forgotten by a success, an edit or a deletion."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_DELAY = 10.0
LONGEST_DELAY = 300.0


@dataclass(frozen=True, kw_only=True)
class Failure:
    message: str
    revision: int
    count: int
    retry_at: float


class Failures:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Failure] = {}

    def record(self, key: str, message: str, *, revision: int, excused: bool = False) -> bool:
        """An excused failure waits as any other, but has nothing to say the first time. True for
        the first one at this revision, or with this message."""
        with self._lock:
            known = self._known.get(key)
            count = known.count + 1 if known and known.revision == revision else 1
            is_news = count == 1 or known is None or known.message != message
            if excused and count == 1:
                message = ""
            delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (count - 1))
            self._known[key] = Failure(
                message=message,
                revision=revision,
                count=count,
                retry_at=clock.monotonic() + delay,
            )
            return is_news

    def clear(self, key: str) -> None:
        with self._lock:
            self._known.pop(key, None)

    def engine_is_back(self) -> None:
        """An engine that was away may have refused anything on its way out: try it all again."""
        with self._lock:
            self._known.clear()

    def held(self, revisions: Mapping[str, int]) -> dict[str, str]:
        """Objects that must still wait, with the reason. A new revision waits for nothing, and
        neither does a removal: what left the document counts as revision 0."""
        now = clock.monotonic()
        with self._lock:
            for key, failure in list(self._known.items()):
                if revisions.get(key, 0) != failure.revision:
                    del self._known[key]
            return {
                key: failure.message
                for key, failure in self._known.items()
                if failure.retry_at > now
            }

    def next_due(self) -> float | None:
        """Seconds until the earliest retry; None when nothing waits."""
        now = clock.monotonic()
        with self._lock:
            waiting = [f.retry_at - now for f in self._known.values() if f.retry_at > now]
        return min(waiting, default=None)
