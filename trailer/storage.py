"""Room on the disk under the database: noticed when it ends, told once, watched until it is back.

SQLite says "database or disk is full", PostgreSQL has a code for it. Reads go on, and everything
that is to be saved fails until somebody frees space; nothing has to be restarted then.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, connection, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

# With less than this SQLite cannot be relied on to write, whatever the next page may need.
FLOOR_BYTES: Final = 1024 * 1024
_LOOK_SECONDS: Final = 1.0
_DISK_FULL: Final = "53100"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# What SQLite says instead when it cannot make or grow a file beside the database.
_MAYBE_NO_ROOM: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
# A table that is extended on the disk and gone with the transaction.
_PROBE: Final = (
    "CREATE TEMPORARY TABLE trailer_room ON COMMIT DROP AS "
    "SELECT repeat(md5(n::text), 200) AS filler FROM generate_series(1, 200) AS n"
)


class Storage:
    """What this process knows of the room for its database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_full = False
        self._looked_at = float("-inf")

    def is_cause_of(self, error: BaseException) -> bool:
        """True if the error came for want of room; the first such one is logged, in one line."""
        if not any(_says_no_room(problem) for problem in _causes(error)):
            return False
        with self._lock:
            is_news, self._is_full = not self._is_full, True
            self._looked_at = time.monotonic()
        if is_news:
            logger.error("the database's disk is full", extra={"reason": self._sentence()})
        return True

    def trouble(self) -> str:
        """A sentence while there is no room; empty otherwise. Looks again at most once a
        second, so that it heals as soon as somebody asks."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_at < _LOOK_SECONDS:
                return self._sentence() if self._is_full else ""
            self._looked_at = now
            was_full = self._is_full
        is_full = self._look(was_full=was_full)
        with self._lock:
            self._is_full = is_full
        if is_full != was_full:
            level, event = (
                (logging.ERROR, "the database's disk is full")
                if is_full
                else (logging.INFO, "the database's disk has room again")
            )
            logger.log(level, event, extra={"reason": self._sentence()} if is_full else {})
        return self._sentence() if is_full else ""

    def _look(self, *, was_full: bool) -> bool:
        folder = _folder()
        if folder is not None:
            return _free_bytes(folder) < FLOOR_BYTES or (was_full and not _can_write(folder))
        return was_full and connection.vendor == "postgresql" and not _can_extend()

    def _sentence(self) -> str:
        folder = _folder()
        if folder is not None:
            free = _free_bytes(folder)
            where = f"The disk of this server's data folder {folder} is full ({free} bytes free)"
        else:
            host = connection.settings_dict.get("HOST") or "this machine"
            where = f"The disk of the database on {host} is full"
        return f"{where}: nothing can be saved. Free space there; Trailer then goes on by itself."


@cache
def storage() -> Storage:
    """One for this process."""
    return Storage()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _says_no_room(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) or 0
        if code == sqlite3.SQLITE_FULL:
            return True
        folder = _folder()
        # The lowest byte is the kind, the rest says more of it.
        is_maybe = (code & 0xFF) in _MAYBE_NO_ROOM
        return is_maybe and folder is not None and _free_bytes(folder) < FLOOR_BYTES
    return getattr(error, "sqlstate", None) == _DISK_FULL


def _folder() -> Path | None:
    """Of the database file; None where it is no file of this machine."""
    if connection.vendor != "sqlite":
        return None
    name = str(connection.settings_dict["NAME"])
    folder = Path(name).parent
    return folder if Path(name).is_absolute() and folder.is_dir() else None


def _free_bytes(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


def _can_write(folder: Path) -> bool:
    """A quota shows only when something is written."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, FLOOR_BYTES)
    except OSError:
        return False
    return True


def _can_extend() -> bool:
    """Not within a transaction of somebody's, which a failure would end."""
    if connection.in_atomic_block:
        return False
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_PROBE)
            transaction.set_rollback(True)
    except DatabaseError:
        return False
    return True
