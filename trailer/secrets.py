"""Encryption of secrets at rest (Fernet); the keys live outside the database."""

from __future__ import annotations

import hashlib
import json
import secrets as entropy
from typing import TYPE_CHECKING, cast

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from trailer.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping


def encrypt(value: str) -> str:
    return _fernet().encrypt(value.encode()).decode()


def decrypt(token: str) -> str:
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise Unavailable(
            "A stored secret can't be read with the present key. Restore TRAILER_SECRET_KEYS "
            "from the backup that belongs to this database."
        ) from error


def encrypt_mapping(values: Mapping[str, str]) -> str:
    return encrypt(json.dumps(dict(values), sort_keys=True)) if values else ""


def decrypt_mapping(token: str) -> dict[str, str]:
    return cast("dict[str, str]", json.loads(decrypt(token))) if token else {}


def digest(token: str) -> str:
    """What is stored of a bearer token: enough to recognise it, useless to a reader."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(kind: str) -> str:
    return f"trl_{kind}_{entropy.token_urlsafe(32)}"


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.TRAILER_SECRET_KEYS])
