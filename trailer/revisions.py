"""Optimistic locking: a change made from an outdated view of an object is refused."""

from __future__ import annotations

from trailer.errors import Conflict


def check_revision(current: int, expected: int | None) -> None:
    """`expected` is what the caller saw, from If-Match; None means that it does not care."""
    if expected is not None and expected != current:
        raise Conflict(
            f"It was changed in the meantime: the revision is {current}, not {expected}. "
            "Reload and retry.",
            code="revision_moved",
        )
