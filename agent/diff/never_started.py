"""Containers that an engine was killed over while it started them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent.observed import ObservedContainer

# An engine that was killed while it started a container: its containerd still has the task, and it
# refuses every further start of the same id.
_STALE_START: Final = re.compile(
    r"id already in use|\btask\b.*already exists|container with (given )?id (already )?exists",
    re.IGNORECASE,
)


def is_stale_start(message: str) -> bool:
    """True if the engine refused a start for what an interrupted one left behind."""
    return _STALE_START.search(message) is not None


def can_never_start(container: ObservedContainer) -> bool:
    """True for one that never ran and never will. Nothing is lost when it is made again."""
    never_ran = container.state == "created" and not container.started_at
    return never_ran and is_stale_start(container.error)
