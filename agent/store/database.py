"""One SQLite file for journal and outbox: one connection, one lock, short transactions."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS owned (
    engine_id TEXT PRIMARY KEY, kind TEXT NOT NULL, object_id TEXT NOT NULL,
    stopped INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS applied (workspace_id TEXT PRIMARY KEY, revision INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS failed_replaces (
    workspace_id TEXT PRIMARY KEY, mark TEXT NOT NULL, revision INTEGER NOT NULL,
    message TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS broken_replaces (
    workspace_id TEXT PRIMARY KEY, mark TEXT NOT NULL, count INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS builds (
    build_id TEXT PRIMARY KEY, image_id TEXT NOT NULL, status TEXT NOT NULL,
    message TEXT NOT NULL DEFAULT '', result BLOB
);
CREATE TABLE IF NOT EXISTS made_images (image_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS pulled (
    engine_id TEXT PRIMARY KEY, image_id TEXT NOT NULL, refused INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS loose_steps (image_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS loose_names (image_id TEXT PRIMARY KEY, ref TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS intents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, verb TEXT NOT NULL,
    name TEXT NOT NULL, event BLOB, started_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, payload BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_key ON outbox (key);
CREATE TABLE IF NOT EXISTS runs (
    engine_id TEXT PRIMARY KEY, restart_count INTEGER NOT NULL, started_at TEXT NOT NULL,
    ended_at INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS reported (key TEXT PRIMARY KEY, payload BLOB NOT NULL);
"""


class Database:
    """Threads share the connection; the lock makes each transaction whole."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        path.chmod(0o600)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """`durable` survives a power cut, at the price of a disk flush. One inside another is
        part of that."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            if durable:
                self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            else:
                self._connection.execute("COMMIT")
            finally:
                if durable:
                    self._connection.execute("PRAGMA synchronous = NORMAL")

    def get_meta(self, key: str) -> str | None:
        with self._lock:
            row = self._connection.execute(
                "SELECT value FROM meta WHERE key = ?", (key,)
            ).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, value),
            )

    def close(self) -> None:
        with self._lock:
            self._connection.close()
