"""Label keys and deterministic engine names; nothing else builds them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

LABEL_MANAGED: Final = "trailer.managed"
LABEL_HOST: Final = "trailer.host"
LABEL_WORKSPACE: Final = "trailer.workspace"
LABEL_NETWORK: Final = "trailer.network"
LABEL_VOLUME: Final = "trailer.volume"
LABEL_IMAGE: Final = "trailer.image"
# Which try made a snapshot: a late one of an older try must not pass for the newest.
LABEL_BUILD: Final = "trailer.build"
LABEL_STACK: Final = "trailer.stack"
LABEL_SERVICE: Final = "trailer.service"
LABEL_SPEC: Final = "trailer.spec"
LABEL_SPEC_FORMAT: Final = "trailer.spec-format"
LABEL_REVISION: Final = "trailer.revision"
LABEL_SIGNATURE: Final = "trailer.signature"
RESERVED_LABEL_PREFIXES: Final = ("trailer.", "traefik.")


def container_name(workspace_name: str) -> str:
    return f"trailer-{workspace_name}"


def next_container_name(workspace_name: str) -> str:
    return f"trailer-{workspace_name}-next"


def aside_container_name(workspace_id: str) -> str:
    """For a moment, while workspaces exchange their names."""
    return f"trailer-{workspace_id}-aside"


def network_name(name: str) -> str:
    return f"trailer-{name}"


def volume_name(name: str) -> str:
    return f"trailer-{name}"


def build_ref(image_id: str) -> str:
    """The tag a build or snapshot result gets on its host; unique and stable per image."""
    return f"trailer/{image_id}:latest"


def build_mark(host_key: str, image_id: str, host_id: str) -> str:
    """A host name that only this host's agent gives to the containers of a build's steps."""
    return f"trailer-build-{signature(host_key, 'build', image_id, host_id)[:32]}"


def signature(host_key: str, kind: str, object_id: str, host_id: str) -> str:
    """Proves that this host's agent made an object: image authors cannot forge it in a LABEL."""
    text = f"{kind}\0{object_id}\0{host_id}".encode()
    return hmac.new(host_key.encode(), text, hashlib.sha256).hexdigest()


def signature_is_valid(
    host_key: str, kind: str, object_id: str, host_id: str, candidate: str
) -> bool:
    return hmac.compare_digest(signature(host_key, kind, object_id, host_id), candidate)
