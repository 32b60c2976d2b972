"""The outbox: what the server has not accepted yet. Statuses coalesce, ledger rows never do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

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
# Cycle reports are the first to go when the server stays away for days.
_CYCLES_KEPT = 200


class Outbox:
    """`put` is the only writer; `take` hands out the oldest items, `accept` forgets them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._filled = threading.Event()
        self._filled.set()

    def put(self, item: ReportItem, *, again: bool = False) -> bool:
        """False when the server was already told exactly this, unless it shall hear it again."""
        key = coalescing_key(item)
        durable = isinstance(item, BuildStatus) and item.status in _TERMINAL
        with self._database.transaction(durable=durable) as connection:
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
                "SELECT payload FROM outbox ORDER BY seq LIMIT ?", (limit,)
            ).fetchall()
            if not rows:
                self._filled.clear()
        return tuple(msgspec.json.decode(row[0], type=ReportItem) for row in rows)

    def accept(self, seqs: Iterable[int]) -> None:
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in seqs])

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
    return "cycle" if isinstance(item, CycleReport) else None


def _drop_old_cycles(connection: Any) -> None:
    connection.execute(
        "DELETE FROM outbox WHERE key = 'cycle' AND seq NOT IN "
        "(SELECT seq FROM outbox WHERE key = 'cycle' ORDER BY seq DESC LIMIT ?)",
        (_CYCLES_KEPT,),
    )
