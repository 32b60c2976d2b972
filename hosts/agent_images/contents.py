"""What an archive of `docker save` holds: the agent's image, under the one name it may have."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent.protocol.naming import agent_image_name
from trailer.errors import Invalid

if TYPE_CHECKING:
    from pathlib import Path

_ARCHITECTURE: Final = re.compile(r"[a-z0-9]{2,16}")
# The manifest and the configuration are small; layers are skipped as they come.
_LARGEST_TEXT: Final = 256 * 1024
_MOST_TEXTS: Final = 1000
_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class Contents:
    """`architecture` as the engine spells it: amd64, arm64. `config`: the SHA-256 of the image's
    configuration, in hexadecimal."""

    image: str
    version: str
    architecture: str
    config: str


def contents_of(path: Path, *, version: str) -> Contents:
    """Raise Invalid unless it holds this server's agent and nothing else.

    Loading an archive gives every name in it a new meaning on the host, so there may be one only.
    """
    texts = _texts(path)
    try:
        entries = json.loads(texts[_MANIFEST])
        [entry] = entries
        config = json.loads(texts[entry["Config"]])
        names = list(entry["RepoTags"] or ())
        labels = (config.get("config") or {}).get("Labels") or {}
        found = str(labels.get("trailer.version", ""))
        architecture, system = str(config["architecture"]), str(config["os"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Invalid(
            "This is not what `docker save` writes of one image. Save the agent's image alone: "
            f"docker save {agent_image_name(version)}"
        ) from None
    if names != [agent_image_name(version)]:
        raise Invalid(
            f"The image in it is named {_listed(names)}. Build it as {agent_image_name(version)}, "
            "and save it by that name."
        )
    if found != version:
        raise Invalid(f"It holds version {found or 'unknown'} of the agent, not {version}.")
    if system != "linux" or not _ARCHITECTURE.fullmatch(architecture):
        raise Invalid(f"It is made for {system}/{architecture}; agents run on Linux.")
    digest = hashlib.sha256(texts[entry["Config"]]).hexdigest()
    return Contents(names[0], version, architecture, digest)


def _listed(names: list[Any]) -> str:
    return ", ".join(str(name)[:200] for name in names[:5]) or "nothing"


def _texts(path: Path) -> dict[str, bytes]:
    """Small files by name, in one pass: a compressed archive cannot be read backwards."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, mode="r|*") as archive:
            for member in archive:
                if member.isfile() and member.size <= _LARGEST_TEXT and len(found) < _MOST_TEXTS:
                    file = archive.extractfile(member)
                    found[member.name.removeprefix("./")] = file.read() if file else b""
    except (tarfile.TarError, OSError, EOFError, ValueError):
        raise Invalid("The file is no archive, or it was cut off.") from None
    return found
