"""Keys without defaults: taken from the environment, or made once and kept in the data folder."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


KEYS_FILE: Final = "fernet.keys"


@dataclass(frozen=True)
class Keys:
    secret_key: str
    # The first encrypts; all decrypt, so a key is rotated by putting a new one in front.
    fernet_keys: tuple[str, ...]


# What examples and copied files hold; also django-insecure-…, which Django writes itself.
_KNOWN: Final = frozenset(
    {"changeme", "change-me", "change_me", "secret", "secretkey", "secret-key", "insecure"}
    | {"password", "default", "your-secret-key", "django-secret-key", "supersecret"}
)


def load_or_create_keys(data_dir: Path, *, secret_key: str, fernet_keys: Sequence[str]) -> Keys:
    _check(secret_key, fernet_keys)
    if secret_key and fernet_keys:
        return Keys(secret_key=secret_key, fernet_keys=tuple(fernet_keys))
    data_dir.mkdir(parents=True, exist_ok=True)
    return Keys(
        secret_key=secret_key or _kept(data_dir / "secret.key", lambda: secrets.token_urlsafe(50)),
        fernet_keys=tuple(fernet_keys)
        or tuple(_kept(data_dir / KEYS_FILE, lambda: Fernet.generate_key().decode()).split()),
    )


def _check(secret_key: str, fernet_keys: Sequence[str]) -> None:
    """A key that everybody knows, or that opens nothing, is refused at the start."""
    if secret_key.lower() in _KNOWN or secret_key.startswith("django-insecure-"):
        raise ImproperlyConfigured(
            "SECRET_KEY is an example that everybody knows. Leave it out, and one is made."
        )
    for key in fernet_keys:
        try:
            # nosemgrep: sealed-elsewhere (only asks whether it is a key)
            Fernet(key)
        except ValueError as error:
            raise ImproperlyConfigured(
                "TRAILER_SECRET_KEYS holds something that is no key. Each is 32 random bytes in "
                "URL-safe base64; leave the setting out, and one is made."
            ) from error


def _kept(path: Path, make: Callable[[], str]) -> str:
    """O_EXCL decides between two processes that start at once: one makes, the other reads."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(make() + "\n")
    return path.read_text().strip()


def write_for_owner(path: Path, keys: Sequence[str]) -> None:
    """Into a new file that only its owner may read, in the shape of TRAILER_SECRET_KEYS: keys are
    never printed, since terminals and logs are kept. An existing file is left alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(",".join(keys) + "\n")


def prepend_key(path: Path, key: str) -> None:
    """Whole or not at all: a file that was cut short would lock every secret away."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{key}\n{path.read_text()}")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
