"""Reading one row for a change, when somebody may be deleting it at the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model

from trailer.errors import NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)


def row_get(rows: QuerySet[M], pk: Any) -> M:
    row = rows.filter(pk=pk).first()
    if row is None:
        noun = rows.model._meta.verbose_name
        raise NotFound(f"This {noun} is gone: somebody deleted it meanwhile.")
    return row


def row_lock(rows: QuerySet[M], pk: Any) -> M:
    """Locked until the caller's transaction ends."""
    return row_get(rows.select_for_update(of=("self",)), pk)
