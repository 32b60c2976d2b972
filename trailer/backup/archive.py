"""One backup: a compressed archive of the database, the keys, and a word about both."""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from trailer.backup.database import dump_database, load_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from trailer.backup.database import Mark

FORMAT: Final = 1
_DATABASE: Final = "database"
_KEYS: Final = "keys.json"
_ABOUT: Final = "about.json"


@dataclass(frozen=True, kw_only=True)
class About:
    format: int
    version: str
    created_at: str
    vendor: str


def backup_write(target: Path) -> About:
    """Whole or not at all, and readable by its owner alone: it holds the keys."""
    about = About(
        format=FORMAT,
        version=settings.TRAILER_VERSION,
        created_at=timezone.now().isoformat(timespec="seconds"),
        vendor=connection.vendor,
    )
    keys = {"secret_key": settings.SECRET_KEY, "fernet_keys": list(settings.TRAILER_SECRET_KEYS)}
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        dump_database(folder / _DATABASE)
        (folder / _KEYS).write_text(json.dumps(keys))
        (folder / _ABOUT).write_text(json.dumps(asdict(about)))
        unfinished = folder / "archive"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(descriptor, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            for part in (_ABOUT, _KEYS, _DATABASE):
                archive.add(folder / part, part)
        unfinished.replace(target)
    return about


def backup_read(source: Path, mark: Mark, restored: Callable[[About], None]) -> About:
    """Load the database, marked, and put the keys where the server looks for them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        about, keys = _opened(source, folder)
        if about.vendor != connection.vendor:
            raise CommandError(
                f"{source} holds a {about.vendor} database, but DATABASE_URL names a "
                f"{connection.vendor} one."
            )
        _refuse_other_keys(keys["fernet_keys"])
        load_database(folder / _DATABASE, mark)
        _keep_keys(keys["secret_key"], keys["fernet_keys"])
    restored(about)
    return about


def backup_keys(source: Path) -> list[str]:
    """What the secrets in it are encrypted with."""
    with tempfile.TemporaryDirectory() as name:
        _, keys = _opened(source, Path(name))
    return list(keys["fernet_keys"])


def _opened(source: Path, folder: Path) -> tuple[About, dict[str, Any]]:
    try:
        with tarfile.open(source, "r:gz") as archive:
            archive.extractall(folder, filter="data")
        about = About(**json.loads((folder / _ABOUT).read_text()))
        keys = json.loads((folder / _KEYS).read_text())
    except (OSError, tarfile.TarError, ValueError, TypeError) as error:
        raise CommandError(f"{source} is not a backup of Trailer: {error}") from error
    if about.format > FORMAT:
        raise CommandError(f"{source} was made by a newer Trailer ({about.version}).")
    return about, keys


def _missing(fernet_keys: list[str]) -> list[str]:
    return [key for key in fernet_keys if key not in settings.TRAILER_SECRET_KEYS]


def _refuse_other_keys(fernet_keys: list[str]) -> None:
    """Keys of the environment cannot be set from here; then they must be the same."""
    if _missing(fernet_keys) and os.environ.get("TRAILER_SECRET_KEYS"):
        # Never the keys themselves: terminals and logs are kept, and read by others.
        raise CommandError(
            "The backup's secrets were encrypted with other keys than TRAILER_SECRET_KEYS holds; "
            "nothing was changed. Run restore FILE --write-keys KEYFILE: it writes the backup's "
            "keys into a new file that only you may read. Set TRAILER_SECRET_KEYS to its line, "
            "restore again, and delete that file."
        )


def _keep_keys(secret_key: str, fernet_keys: list[str]) -> None:
    """After the database: had that failed, the old one would be left with the wrong keys."""
    folder: Path = settings.TRAILER_DATA_DIR
    folder.mkdir(parents=True, exist_ok=True)
    if _missing(fernet_keys):
        _write_key(folder / "fernet.keys", "\n".join(fernet_keys))
    if not os.environ.get("SECRET_KEY") and secret_key != settings.SECRET_KEY:
        _write_key(folder / "secret.key", secret_key)


def _write_key(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    temporary.replace(path)
