"""The audit as CSV, made row by row: a year of it must not fill the memory."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, Final

from trailer.audit.selectors import with_seals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from trailer.audit.models import AuditEntry

COLUMNS: Final = (
    *("at", "actor_name", "actor_id", "via", "token_name", "address", "request_id"),
    *("action", "kind", "object_id", "object_name", "outcome", "changes"),
    # `manage.py verify_audit --head seal:seal_digest` asks whether that seal is still there.
    *("id", "seal", "seal_digest"),
)
_ROWS_AT_ONCE: Final = 500
# A cell that begins so is a formula to a spreadsheet, and the names in it are anybody's.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_pieces(rows: QuerySet[AuditEntry]) -> Iterator[bytes]:
    yield _lines([COLUMNS])
    batch = []
    for row in with_seals(rows).iterator(chunk_size=_ROWS_AT_ONCE):
        batch.append([_cell(getattr(row, name)) for name in COLUMNS])
        if len(batch) == _ROWS_AT_ONCE:
            yield _lines(batch)
            batch = []
    yield _lines(batch)


def _lines(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False) if value else ""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
