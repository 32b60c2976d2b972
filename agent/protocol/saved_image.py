"""What an archive of `docker save` would name on the engine that loads it.

Loading gives every name in an archive a new meaning on the host, also names of other images, so
server and agent both look before an archive gets near an engine. Engines read `manifest.json`, or
with the containerd image store the names written into `index.json`.
"""

from __future__ import annotations

import json
import tarfile
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Manifest and configuration are small; layers are skipped as they come.
_LARGEST_TEXT: Final = 256 * 1024
_MOST_TEXTS: Final = 1000
_MANIFEST: Final = "manifest.json"
_INDEX: Final = "index.json"
_NAME_IN_INDEX: Final = "io.containerd.image.name"


class NoSavedImage(ValueError):
    """The file is not what `docker save` writes."""


def texts_in(file: IO[bytes]) -> dict[str, bytes]:
    """Small files by name, in one pass: a compressed archive cannot be read backwards."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                if member.isfile() and member.size <= _LARGEST_TEXT and len(found) < _MOST_TEXTS:
                    body = archive.extractfile(member)
                    found[member.name.removeprefix("./")] = body.read() if body else b""
    except (tarfile.TarError, OSError, EOFError, ValueError) as problem:
        raise NoSavedImage("The file is no archive, or it was cut off.") from problem
    return found


def manifest_in(texts: Mapping[str, bytes]) -> list[dict[str, Any]]:
    try:
        entries = json.loads(texts[_MANIFEST])
        if all(isinstance(entry, dict) for entry in entries):
            return list(entries)
    except (KeyError, TypeError, ValueError):
        pass
    raise NoSavedImage("It lacks the manifest that `docker save` writes.")


def names_in(texts: Mapping[str, bytes]) -> set[str]:
    """All names that an engine would give to images of this archive."""
    names = {str(name) for entry in manifest_in(texts) for name in entry.get("RepoTags") or ()}
    try:
        index = json.loads(texts.get(_INDEX, b"{}"))
        rows = [row.get("annotations") or {} for row in index.get("manifests") or ()]
    except (TypeError, ValueError, AttributeError):
        raise NoSavedImage("Its index cannot be read.") from None
    return names | {str(row[_NAME_IN_INDEX]) for row in rows if _NAME_IN_INDEX in row}
