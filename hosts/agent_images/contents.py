"""What an archive of `docker save` holds: the agent's image, under the one name it may have."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol.naming import agent_image_name
from agent.protocol.saved_image import NoSavedImage, manifest_in, names_in, texts_in
from trailer.errors import Invalid

if TYPE_CHECKING:
    from pathlib import Path

_ARCHITECTURE: Final = re.compile(r"[a-z0-9]{2,16}")


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
    try:
        with path.open("rb") as file:
            texts = texts_in(file)
        [entry] = manifest_in(texts)
        config = json.loads(texts[entry["Config"]])
        names = names_in(texts)
        labels = (config.get("config") or {}).get("Labels") or {}
        found = str(labels.get("trailer.version", ""))
        architecture, system = str(config["architecture"]), str(config["os"])
    except NoSavedImage as problem:
        raise Invalid(f"{problem} {_advice(version)}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Invalid(
            f"This is not what `docker save` writes of one image. {_advice(version)}"
        ) from None
    if names != {agent_image_name(version)}:
        raise Invalid(
            f"The image in it is named {_listed(names)}. Build it as {agent_image_name(version)}, "
            "and save it by that name."
        )
    if found != version:
        raise Invalid(f"It holds version {found or 'unknown'} of the agent, not {version}.")
    if system != "linux" or not _ARCHITECTURE.fullmatch(architecture):
        raise Invalid(f"It is made for {system}/{architecture}; agents run on Linux.")
    digest = hashlib.sha256(texts[entry["Config"]]).hexdigest()
    return Contents(agent_image_name(version), version, architecture, digest)


def _advice(version: str) -> str:
    return f"Save the agent's image alone: docker save {agent_image_name(version)}"


def _listed(names: set[str]) -> str:
    return ", ".join(name[:200] for name in sorted(names)[:5]) or "nothing"
