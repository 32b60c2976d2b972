"""Writes every stored secret anew with the first key, so that older keys can be thrown away."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.db import models

# How every Fernet token of this century begins: the version byte and a time in base64.
_BEGINS: Final = "gAAAAA"
_CHUNK: Final = 500


@dataclass
class Rotated:
    renewed: int = 0
    # Cells that look like a secret but that no present key opens, by table and column.
    unreadable: dict[str, int] = field(default_factory=dict)


def rotate_secrets() -> Rotated:
    """Looks into every text column of every table: no list has to be kept, none can be forgotten.

    A cell that somebody changes at the same moment is theirs: it has the first key already.
    """
    keys = MultiFernet([Fernet(key) for key in settings.TRAILER_SECRET_KEYS])
    newest = Fernet(settings.TRAILER_SECRET_KEYS[0])
    found = Rotated()
    for model in apps.get_models():
        for column in _text_columns(model):
            _rotate_column(model, column, keys, newest, found)
    return found


def _text_columns(model: type[models.Model]) -> list[str]:
    return [
        column.attname
        for column in model._meta.concrete_fields
        if isinstance(column, models.CharField | models.TextField) and not column.primary_key
    ]


def _rotate_column(
    model: type[models.Model], column: str, keys: MultiFernet, newest: Fernet, found: Rotated
) -> None:
    rows = model._base_manager.filter(**{f"{column}__startswith": _BEGINS})
    for pk, token in rows.values_list("pk", column).iterator(chunk_size=_CHUNK):
        try:
            newest.decrypt(token)
            continue
        except InvalidToken:
            pass
        try:
            renewed = keys.rotate(token.encode()).decode()
        except InvalidToken:
            name = f"{model._meta.db_table}.{column}"
            found.unreadable[name] = found.unreadable.get(name, 0) + 1
            continue
        same = model._base_manager.filter(pk=pk, **{column: token})
        found.renewed += same.update(**{column: renewed})
