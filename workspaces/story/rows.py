"""What the story is made of: rows of the ledger, what their workspace is now, and the entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

ASKED: Final = "asked"
DONE: Final = "done"
FAILED: Final = "failed"
OUTCOMES: Final = (ASKED, DONE, FAILED)

USER: Final = "user"
AGENT: Final = "agent"
ENGINE: Final = "engine"
SCHEDULE: Final = "schedule"
STACK: Final = "stack"

CRASHED: Final = "crashed"
RESTARTED: Final = "restarted"
HEAL: Final = "heal"
ERROR: Final = "error"
CREATE: Final = "create"
REPLACE: Final = "replace"
SNAPSHOT: Final = "snapshot_requested"
# What agents write at the end of an act.
ENDS: Final = frozenset(
    {CREATE, REPLACE, "start", "stop", "rename", "connect", "disconnect", ERROR}
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the ledger. `user` is a user's name, `name` who it was when it was no person."""

    id: UUID
    at: datetime
    received_at: datetime
    kind: str
    cause: str
    changes: list[dict[str, Any]] = field(default_factory=list)
    user: str = ""
    name: str = ""
    revision: int | None = None
    cycle: int | None = None
    reported: bool = False
    count: int = 1
    last_at: datetime | None = None
    exit: Mapping[str, Any] | None = None
    health_output: str = ""
    last_lines: str = ""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The workspace as it is now. `snapshots` are those of it, oldest first: when each was asked
    for, and how it stands."""

    revision: int
    observed_revision: int
    status: str
    message: str = ""
    stack: str = ""
    snapshots: tuple[tuple[datetime, str], ...] = ()


@dataclass(frozen=True)
class By:
    """Who or what did it. `type` is one of user, agent, engine, schedule and stack."""

    type: str
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One act, or one thing that happened. `parts` are the kinds of what the agent did for it,
    `problem` is why it failed; `together` is true of one that a later change overtook."""

    row: Row
    by: By
    outcome: str
    parts: tuple[str, ...] = ()
    duration_ms: int | None = None
    problem: str = ""
    together: bool = False
    is_drift: bool = False

    @property
    def kind(self) -> str:
        return self.row.kind
