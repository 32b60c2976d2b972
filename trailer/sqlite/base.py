"""Django's SQLite engine, whose writers of one process take turns before they ask SQLite.

SQLite lets who finds the database locked sleep and try again, up to a tenth of a second at a time
and in no order: with eight creations at once, one in twenty waited over a second for a lock that
was free most of that time. A thread that waits here is woken when the one before it has ended.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from django.db.backends.sqlite3 import base


@cache
def turn_of(database_name: str) -> threading.Lock:
    """One lock for each database file of this process. It orders who asks SQLite, and no more:
    other processes write to the file as well, and SQLite's own lock decides."""
    return threading.Lock()


class DatabaseWrapper(base.DatabaseWrapper):
    """Only transactions take turns; a single statement is over before waiting pays."""

    def __init__(self, settings_dict: dict[str, Any], alias: str = "default") -> None:
        super().__init__(settings_dict, alias)
        self._turn: threading.Lock | None = None

    def _start_transaction_under_autocommit(self) -> None:
        # Known only now: tests put another file in place after the wrapper was made.
        turn = turn_of(str(self.settings_dict["NAME"]))
        # As long as SQLite would have us wait; then it shall say itself what is wrong.
        if turn.acquire(timeout=self.settings_dict["OPTIONS"].get("timeout", 5)):
            self._turn = turn
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        except BaseException:
            self._pass_on()
            raise

    def _commit(self) -> None:
        # One that fails is rolled back, or its connection is closed.
        super()._commit()  # type: ignore[misc]  # the stubs leave it out
        self._pass_on()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._pass_on()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()
