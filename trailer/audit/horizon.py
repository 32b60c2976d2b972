"""How far back the audit is settled: nothing that is still being written lies before that."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import connection

if TYPE_CHECKING:
    from datetime import datetime

# Longer than any transaction of ours takes, and than the clocks of two servers are apart.
SETTLED: Final = timedelta(minutes=5)
_APART: Final = timedelta(minutes=1)
_OLDEST_WRITER: Final = """
SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""


def not_ahead(now: datetime) -> datetime:
    """By the database's clock at most: what a server seals whose own was set forward would report
    everybody's rows as added later. SQLite has no other clock than the server's."""
    if connection.vendor == "sqlite":
        return now
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return min(now, moment)


def settled_before(now: datetime) -> datetime:
    """On PostgreSQL not after the oldest transaction that has written: a process that hangs in
    the middle of one may commit its row at any time. SQLite has one writer, with a limit."""
    settled = now - SETTLED
    if connection.vendor == "sqlite":
        return settled
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_WRITER)
        [oldest] = cursor.fetchone()
    return settled if oldest is None else min(settled, oldest - _APART)
