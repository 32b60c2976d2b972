"""Rows put into a running server's database: what takes minutes or a restore to come by."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from hosts.services.restored import HELD
from tests.ground.template import DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.server import RunningTrailer


@contextmanager
def workspaces_like(server: RunningTrailer, workspace: Any, number: int) -> Iterator[None]:
    """So many more of the same kind; a request for each would take a minute."""
    keys = [uuid.uuid4().hex for _ in range(number)]
    with closing(_database(server)) as database:
        with database:
            one = "CREATE TEMP TABLE one AS SELECT * FROM workspaces_workspace WHERE id = ?"
            database.execute(one, (_key(workspace),))
            for place, key in enumerate(keys):
                database.execute("UPDATE one SET id = ?, name = ?", (key, f"many-{place}"))
                database.execute("INSERT INTO workspaces_workspace SELECT * FROM one")
        try:
            yield
        finally:
            gone = [(key,) for key in keys]
            with database:
                database.executemany("DELETE FROM workspaces_event WHERE workspace_id = ?", gone)
                database.executemany("DELETE FROM workspaces_workspace WHERE id = ?", gone)


def mark_restored(server: RunningTrailer, host: Any) -> None:
    """As a restored backup leaves every host."""
    with closing(_database(server)) as database, database:
        database.execute(f"{HELD.statement} WHERE id = ?", (_key(host),))


def _database(server: RunningTrailer) -> sqlite3.Connection:
    return sqlite3.connect(server.folder / "data" / DATABASE, timeout=30)


def _key(thing: Any) -> str:
    return uuid.UUID(thing["id"]).hex
