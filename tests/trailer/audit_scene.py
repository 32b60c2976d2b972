"""Audit rows, seals over them, and what somebody who rules the database can do to both."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils import timezone

from trailer.audit.models import AuditEntry
from trailer.audit.sealing import audit_seal
from trailer.audit.verify import audit_verify

if TYPE_CHECKING:
    from uuid import UUID

TABLES = ("audit_auditentry", "audit_auditseal")


def make_rows(count: int, *, hours_ago: float = 2) -> list[AuditEntry]:
    begun = timezone.now() - timedelta(hours=hours_ago)
    return [
        AuditEntry.objects.create(
            at=begun + timedelta(seconds=number),
            via="system",
            action="host.update",
            actor_name=f"eva{number}",
            changes=[{"field": "cpus", "from": 1.5, "to": {"ü": [number, None]}}],
        )
        for number in range(count)
    ]


def superuser(statement: str, *values: Any) -> None:
    """What somebody with the whole database in their hands can do, but without our keys."""
    with connection.cursor() as cursor:
        for table in TABLES:
            if connection.vendor == "postgresql":
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            else:
                short = "rows" if table == TABLES[0] else "seals"
                cursor.execute(f"DROP TRIGGER IF EXISTS audit_{short}_stay")
                cursor.execute(f"DROP TRIGGER IF EXISTS audit_{short}_remain")
        cursor.execute(statement, values)


def stored_id(row: UUID) -> str:
    return str(row) if connection.vendor == "postgresql" else row.hex


def make_sealed(count: int = 5, *, minutes_ago: float = 0) -> list[AuditEntry]:
    rows = make_rows(count)
    audit_seal(timezone.now() - timedelta(minutes=minutes_ago))
    assert audit_verify().problems == []
    return rows


def told() -> str:
    found = audit_verify()
    assert found.problems
    return " ".join(found.problems)
