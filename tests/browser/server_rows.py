"""Rows put into a running server's database: what takes minutes or a restore to come by."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import psycopg

from hosts.services.restored import HELD
from tests.ground.postgres import URL_FILE
from tests.ground.template import DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.server import RunningTrailer


@contextmanager
def workspaces_like(server: RunningTrailer, workspace: Any, number: int) -> Iterator[None]:
    """So many more of the same kind; a request for each would take a minute."""
    keys = [str(uuid.uuid4()) for _ in range(number)]
    with Rows(server) as rows:
        one = "CREATE TEMP TABLE one AS SELECT * FROM workspaces_workspace WHERE id = ?"
        rows.run(one, rows.key(workspace["id"]))
        for place, key in enumerate(keys):
            rows.run("UPDATE one SET id = ?, name = ?", rows.key(key), f"many-{place}")
            rows.run("INSERT INTO workspaces_workspace SELECT * FROM one")
    try:
        yield
    finally:
        with Rows(server) as rows:
            for key in keys:
                rows.run("DELETE FROM workspaces_event WHERE workspace_id = ?", rows.key(key))
                rows.run("DELETE FROM workspaces_workspace WHERE id = ?", rows.key(key))


def mark_restored(server: RunningTrailer, host: Any) -> None:
    """As a restored backup leaves every host."""
    with Rows(server) as rows:
        rows.run(f"{HELD.statement} WHERE id = ?", rows.key(host["id"]))


class Rows:
    """One transaction on the server's database, whichever kind it has."""

    def __init__(self, server: RunningTrailer) -> None:
        url = server.folder / URL_FILE
        self._is_file = not url.exists()
        self._database: Any = (
            sqlite3.connect(server.folder / "data" / DATABASE, timeout=30)
            if self._is_file
            else psycopg.connect(url.read_text())
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._database.commit()
        self._database.close()

    def run(self, statement: str, *values: str) -> None:
        marked = statement if self._is_file else statement.replace("?", "%s")
        self._database.execute(marked, values)

    def key(self, given: str) -> str:
        """As the database writes it."""
        return uuid.UUID(given).hex if self._is_file else given
