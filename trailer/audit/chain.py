"""What a seal says of audit rows: one digest for each, and one over all and the seal before.

Pure. The chain itself has no key, the signature over each link has one: a key that is gone makes
nothing unreadable, because every later seal vouches for all before it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from trailer.audit.models import AuditEntry, AuditSeal

# A new column gets a new format; what was sealed before stays as it was sealed.
FORMAT: Final = 1
COLUMNS: Final = {
    1: (
        *("id", "at", "actor_id", "actor_name", "via", "token_name", "address", "request_id"),
        *("action", "kind", "object_id", "object_name", "changes", "outcome"),
    )
}
PURPOSE: Final = "audit"
_ID: Final = 16
_ENTRY: Final = _ID + hashlib.sha256().digest_size


def row_digest(row: AuditEntry, form: int = FORMAT) -> bytes:
    """Over what the database gave back, so that its own way to write a value does not matter."""
    return hashlib.sha256(_canonical([getattr(row, name) for name in COLUMNS[form]])).digest()


def pack(rows: Iterable[AuditEntry]) -> bytes:
    return b"".join(row.id.bytes + row_digest(row) for row in rows)


def unpack(packed: bytes) -> Iterator[tuple[UUID, bytes]]:
    for start in range(0, len(packed) - _ENTRY + 1, _ENTRY):
        middle = start + _ID
        yield UUID(bytes=packed[start:middle]), packed[middle : start + _ENTRY]


def seal_digest(seal: AuditSeal) -> str:
    head = _canonical(
        [
            *(seal.format, seal.number, seal.previous, seal.since, seal.until),
            *(seal.count, seal.first_id, seal.last_id),
        ]
    )
    return hashlib.sha256(head + b"\n" + bytes(seal.rows)).hexdigest()


def moment_told(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="seconds")


def _canonical(values: list[Any]) -> bytes:
    return json.dumps(
        [_plain(value) for value in values], sort_keys=True, separators=(",", ":")
    ).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    return _moment(value) if hasattr(value, "isoformat") else value


def _moment(value: datetime) -> str:
    return value.isoformat(timespec="microseconds")
