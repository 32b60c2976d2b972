"""The outbox: what the server has not accepted yet. Statuses coalesce, ledger rows do not, but for
equal ends of a container that follow each other: those become one row with a count."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from agent.diff.ends import CRASHED, RESTARTED
from agent.protocol.report import (
    BuildStatus,
    CycleReport,
    ImageObserved,
    LeftoversReport,
    RegistryTested,
    ReportItem,
    ResourceStatus,
    TombstoneDone,
    WorkspaceEvent,
    WorkspaceStatus,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.store.database import Database

_TERMINAL = frozenset({"finished", "failed", "cancelled"})
_ENDS = frozenset({CRASHED, RESTARTED})
# Cycle reports are the first to go when the server stays away for days.
_CYCLES_KEPT = 200


class Outbox:
    """`put` is the only writer; `take` hands out the oldest items, `accept` forgets them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._filled = threading.Event()
        self._filled.set()
        # Rows up to here were handed out, and may be on their way.
        self._taken = 0

    def put(self, item: ReportItem, *, again: bool = False) -> bool:
        """False when the server was already told exactly this, unless it shall hear it again."""
        key = coalescing_key(item)
        durable = isinstance(item, BuildStatus) and item.status in _TERMINAL
        with self._database.transaction(durable=durable) as connection:
            if isinstance(item, WorkspaceEvent):
                item = self._counted(connection, item)
            if key is not None:
                essence = msgspec.json.encode(msgspec.structs.replace(item, seq=0))
                known = connection.execute(
                    "SELECT payload FROM reported WHERE key = ?", (key,)
                ).fetchone()
                if known is not None and known[0] == essence and not again:
                    return False
                connection.execute("DELETE FROM outbox WHERE key = ?", (key,))
                connection.execute("INSERT OR REPLACE INTO reported VALUES (?, ?)", (key, essence))
            if isinstance(item, BuildStatus) and key is None:
                connection.execute("DELETE FROM outbox WHERE key = ?", (_build_key(item),))
            cursor = connection.execute(
                "INSERT INTO outbox (key, payload) VALUES (?, ?)",
                (key if key is not None else _bulk_key(item), b""),
            )
            seq = int(cursor.lastrowid or 0)
            payload = msgspec.json.encode(msgspec.structs.replace(item, seq=seq))
            connection.execute("UPDATE outbox SET payload = ? WHERE seq = ?", (payload, seq))
            if isinstance(item, CycleReport):
                _drop_old_cycles(connection)
        self._filled.set()
        return True

    def take(self, limit: int) -> tuple[ReportItem, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT payload, seq FROM outbox ORDER BY seq LIMIT ?", (limit,)
            ).fetchall()
            if not rows:
                self._filled.clear()
            else:
                self._taken = max(self._taken, rows[-1][1])
        return tuple(msgspec.json.decode(row[0], type=ReportItem) for row in rows)

    def accept(self, seqs: Iterable[int]) -> None:
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in seqs])

    def _counted(self, connection: Any, item: WorkspaceEvent) -> WorkspaceEvent:
        """With the equal end right before it, if that was not handed out yet. Any other row of
        the workspace ends the counting."""
        row = connection.execute(
            "SELECT seq, payload FROM outbox WHERE key = ? ORDER BY seq DESC LIMIT 1",
            (_end_key(item),),
        ).fetchone()
        if item.event not in _ENDS or row is None or row[0] <= self._taken:
            before = None
        else:
            before = msgspec.json.decode(row[1], type=WorkspaceEvent)
        if before is None or not _is_equal(before, item):
            connection.execute("UPDATE outbox SET key = NULL WHERE key = ?", (_end_key(item),))
            return item
        connection.execute("DELETE FROM outbox WHERE seq = ?", (row[0],))
        return msgspec.structs.replace(item, at=before.at, count=before.count + item.count)

    def is_empty(self) -> bool:
        with self._database.transaction() as connection:
            return connection.execute("SELECT 1 FROM outbox LIMIT 1").fetchone() is None

    def wait(self, timeout: float) -> bool:
        return self._filled.wait(timeout)

    def wake(self) -> None:
        self._filled.set()

    def forget_reported(self) -> None:
        """A new session is told everything again."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM reported")


def coalescing_key(item: ReportItem) -> str | None:
    """Items with the same key replace each other; None is kept for ever."""
    match item:
        case WorkspaceStatus():
            return f"workspace:{item.workspace_id}"
        case ResourceStatus():
            return f"{item.resource}:{item.object_id}"
        case ImageObserved():
            return f"image:{item.image_id}"
        case RegistryTested():
            return f"registry:{item.test_id}"
        case TombstoneDone():
            return f"tombstone:{item.tombstone_id}"
        case BuildStatus():
            return None if item.status in _TERMINAL else _build_key(item)
        case LeftoversReport():
            return "leftovers"
        case WorkspaceEvent() | CycleReport():
            return None


def _build_key(item: BuildStatus) -> str:
    return f"build:{item.build_id}"


def _bulk_key(item: ReportItem) -> str | None:
    """Not to replace others by: by it rows are found again."""
    if isinstance(item, WorkspaceEvent) and item.event in _ENDS:
        return _end_key(item)
    return "cycle" if isinstance(item, CycleReport) else None


def _end_key(item: WorkspaceEvent) -> str:
    return f"ends:{item.workspace_id}"


def _is_equal(before: WorkspaceEvent, item: WorkspaceEvent) -> bool:
    return (before.event, before.exit, before.cause) == (item.event, item.exit, item.cause)


def _drop_old_cycles(connection: Any) -> None:
    connection.execute(
        "DELETE FROM outbox WHERE key = 'cycle' AND seq NOT IN "
        "(SELECT seq FROM outbox WHERE key = 'cycle' ORDER BY seq DESC LIMIT ?)",
        (_CYCLES_KEPT,),
    )
