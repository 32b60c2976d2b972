"""Writes every stored secret anew: with the first key, and bound to its row and column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trailer.errors import Unavailable
from trailer.sealed import SealedField, seal, sealed_fields, unseal
from trailer.secrets import UNBOUND, is_newest

if TYPE_CHECKING:
    from django.db import models

_CHUNK: Final = 500


@dataclass
class Rotated:
    renewed: int = 0
    # Cells that no present key opens where they stand, by table and column.
    unreadable: dict[str, int] = field(default_factory=dict)


def rotate_secrets() -> Rotated:
    """Afterwards older keys can be thrown away. Every cell is opened, also one that could stay:
    what was copied there from elsewhere is found.

    A cell that somebody changes at the same moment is theirs: it has the first key already.
    """
    found = Rotated()
    for model, column in sealed_fields():
        rows = model._base_manager.exclude(**{column.attname: ""})
        _renew(rows, column, found)
    return found


def bind_secrets() -> Rotated:
    """Only what an older version wrote: part of every start, where it costs a look."""
    found = Rotated()
    for model, column in sealed_fields():
        rows = model._base_manager.filter(**{f"{column.attname}__startswith": UNBOUND})
        _renew(rows, column, found)
    return found


def _renew(rows: models.QuerySet[models.Model], column: SealedField, found: Rotated) -> None:
    name = column.attname
    for row in rows.only(*column.of, name).iterator(chunk_size=_CHUNK):
        stored = getattr(row, name)
        try:
            value = unseal(row, name)
        except Unavailable:
            table = f"{row._meta.db_table}.{name}"
            found.unreadable[table] = found.unreadable.get(table, 0) + 1
            continue
        if not is_newest(stored):
            same = type(row)._base_manager.filter(pk=row.pk, **{name: stored})
            found.renewed += same.update(**{name: seal(row, name, value)})
