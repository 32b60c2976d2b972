"""Encryption of secrets at rest, signatures and bearer tokens; the keys are not in the database.

A stored secret is `t2.<key>.<token>`: the name of the key, and a Fernet token under a key that is
derived from it and from the place the secret belongs to. Fernet knows no associated data; a key
per place does more than a place inside the text: elsewhere the token opens with nothing, so there
is no comparison to forget and no foreign secret in memory, and without its beginning it does not
pass for an older value. What was written before (a bare Fernet token) still opens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets as entropy
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from django.conf import settings

from trailer.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# How every bare Fernet token of this century begins: the version byte and a time in base64.
UNBOUND: Final = "gAAAAA"
_BOUND: Final = "t2."


def encrypt(value: str, place: str) -> str:
    key = settings.TRAILER_SECRET_KEYS[0]
    token = _fernet_of(key, place).encrypt(value.encode()).decode()
    return f"{_BOUND}{_name_of(key)}.{token}"


def decrypt(stored: str, place: str) -> str:
    """Only at the place that it was encrypted for."""
    try:
        if not stored.startswith(_BOUND):
            keys = [Fernet(key) for key in settings.TRAILER_SECRET_KEYS]
            return MultiFernet(keys).decrypt(stored).decode()
        name, _, token = stored.removeprefix(_BOUND).partition(".")
        for key in settings.TRAILER_SECRET_KEYS:
            if _name_of(key) == name:
                return _fernet_of(key, place).decrypt(token).decode()
    except InvalidToken as error:
        if stored.startswith(_BOUND):
            raise Unavailable(
                f"The secret in {place} does not belong there: it was changed, or copied from "
                "elsewhere. Restore it from a backup, or make what it belongs to anew.",
                code="secret_out_of_place",
            ) from error
    raise Unavailable(
        f"The secret in {place} can't be read with the present keys. Restore TRAILER_SECRET_KEYS "
        "from the backup that belongs to this database."
    )


def encrypt_mapping(values: Mapping[str, str], place: str) -> str:
    return encrypt(json.dumps(dict(values), sort_keys=True), place) if values else ""


def decrypt_mapping(stored: str, place: str) -> dict[str, str]:
    return cast("dict[str, str]", json.loads(decrypt(stored, place))) if stored else {}


def is_newest(stored: str) -> bool:
    """Bound to a place, and by the key that encrypts now."""
    return stored.startswith(f"{_BOUND}{_name_of(settings.TRAILER_SECRET_KEYS[0])}.")


def channel_keys(keys: Iterable[str]) -> list[str]:
    """What encrypts and signs messages between the processes of a deployment, for each key."""
    return [base64.urlsafe_b64encode(_derived(key, "channels", 32)).decode() for key in keys]


def sign(data: bytes, purpose: str) -> tuple[str, str]:
    """The name of the first key, and what only its holder can say of these bytes."""
    key = settings.TRAILER_SECRET_KEYS[0]
    return _name_of(key), _signature(key, data, purpose)


def is_signed(data: bytes, purpose: str, name: str, signature: str) -> bool | None:
    """None: no present key has this name."""
    for key in settings.TRAILER_SECRET_KEYS:
        if _name_of(key) == name:
            return hmac.compare_digest(_signature(key, data, purpose), signature)
    return None


def digest(token: str) -> str:
    """What is stored of a bearer token: enough to recognise it, useless to a reader."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(kind: str) -> str:
    return f"trl_{kind}_{entropy.token_urlsafe(32)}"


def _signature(key: str, data: bytes, purpose: str) -> str:
    return hmac.new(_derived(key, f"sign\0{purpose}", 32), data, hashlib.sha256).hexdigest()


def _fernet_of(key: str, place: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derived(key, f"secret\0{place}", 32)))


@lru_cache(maxsize=16)
def _name_of(key: str) -> str:
    """Tells keys apart without telling anything of them."""
    return _derived(key, "name", 4).hex()


def _derived(key: str, purpose: str, length: int) -> bytes:
    """Expanded only: a Fernet key is random already, there is nothing to extract."""
    info = f"trailer\0{purpose}".encode()
    return HKDFExpand(SHA256(), length, info).derive(base64.urlsafe_b64decode(key))
