"""Columns for secrets: what is stored opens only in the row and column that it was written for.

Every secret of the database goes through `seal` and `unseal`; a row's place is the name of its
table and column and whatever says whose secret it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models

from agent.protocol.redaction import LIVE
from trailer import secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    _Text = models.TextField[str, str]
else:
    # Django's own class takes no type parameter when the program runs.
    _Text = models.TextField


class SealedField(_Text):
    """`of`: the columns that say whose secret it is. They never change while the row lives, are
    known before it is saved, and only the last of them may hold spaces. `is_document`: it is no
    secret as a whole, but holds some."""

    def __init__(
        self,
        *args: Any,
        of: tuple[str, ...] = ("pk",),
        is_document: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.of = of
        self.is_document = is_document

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """To the database it is a text: no migration has to know this class."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs


def seal(row: models.Model, column: str, value: str) -> str:
    """What to store there; nothing for nothing."""
    _hush(row, column, value)
    return secrets.encrypt(value, _place(row, column)) if value else ""


def unseal(row: models.Model, column: str) -> str:
    stored = getattr(row, column)
    value = secrets.decrypt(stored, _place(row, column)) if stored else ""
    _hush(row, column, value)
    return value


def seal_mapping(row: models.Model, column: str, values: Mapping[str, str]) -> str:
    LIVE.remember(*values.values())
    return secrets.encrypt_mapping(values, _place(row, column))


def unseal_mapping(row: models.Model, column: str) -> dict[str, str]:
    values = secrets.decrypt_mapping(getattr(row, column), _place(row, column))
    LIVE.remember(*values.values())
    return values


def sealed_fields() -> Iterator[tuple[type[models.Model], SealedField]]:
    """Every column for secrets of the schema."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, SealedField):
                yield model, field


def _hush(row: models.Model, column: str, value: str) -> None:
    """From now on no log line of this process shows it."""
    if not _field(row, column).is_document:
        LIVE.remember(value)


def _place(row: models.Model, column: str) -> str:
    whose = " ".join(str(getattr(row, name)) for name in _field(row, column).of)
    return f"{row._meta.label_lower}.{column} of {whose}"


def _field(row: models.Model, column: str) -> SealedField:
    field = row._meta.get_field(column)
    if not isinstance(field, SealedField):
        raise TypeError(f"{row._meta.label}.{column} is no column for secrets.")
    return field
