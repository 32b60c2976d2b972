"""Label keys and deterministic engine names; nothing else builds them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from agent.protocol import image_refs

LABEL_MANAGED: Final = "trailer.managed"
LABEL_HOST: Final = "trailer.host"
LABEL_WORKSPACE: Final = "trailer.workspace"
LABEL_NETWORK: Final = "trailer.network"
LABEL_VOLUME: Final = "trailer.volume"
LABEL_IMAGE: Final = "trailer.image"
# Which try made a snapshot: a late one of an older try must not pass for the newest.
LABEL_BUILD: Final = "trailer.build"
LABEL_PREREQUISITE: Final = "trailer.prerequisite"
LABEL_STACK: Final = "trailer.stack"
LABEL_SERVICE: Final = "trailer.service"
LABEL_SPEC: Final = "trailer.spec"
LABEL_SPEC_FORMAT: Final = "trailer.spec-format"
LABEL_REVISION: Final = "trailer.revision"
LABEL_SIGNATURE: Final = "trailer.signature"
# The agent's own container, and what an overseer writes on those it makes.
LABEL_AGENT: Final = "trailer.agent"
LABEL_AGENT_ROLE: Final = "trailer.agent-role"
LABEL_CREATED_AT: Final = "trailer.created-at"
LABEL_OVERSEER: Final = "trailer.overseer"
# The range that a small network was cut from; its neighbours come from the same one.
LABEL_RANGE: Final = "trailer.range"
# Differs each time that a volume is made: one made again holds nothing of the one before.
LABEL_INSTANCE: Final = "trailer.instance"
_LINK: Final = "trailer.router."
# Local images of ours have names in it. `.invalid` never resolves (RFC 2606), so that nobody can
# offer an image under such a name, as anybody could under a name without a registry's host.
LOCAL_REGISTRY: Final = "trailer.invalid"
_SOURCES: Final = f"{LOCAL_REGISTRY}/sources/"
RESERVED_LABEL_PREFIXES: Final = ("trailer.", "traefik.")


def agent_image_name(version: str) -> str:
    """What the agent's image is called where no registry has it."""
    return f"{LOCAL_REGISTRY}/agent:{version}"


def is_pulled(image: str) -> bool:
    """True for a name that says which registry it is from. An engine takes any other one for
    Docker Hub's, where it may be anybody's, and an agent is root on its host."""
    return image_refs.names_registry(image) and not is_local_name(image)


def sources_image(mark: str) -> str:
    """What the engine calls, during a build, the image with what was fetched for it."""
    return f"{_SOURCES}{mark}:latest"


def is_sources_image(image: str) -> bool:
    return image.startswith(_SOURCES)


def is_local_name(image: str) -> bool:
    """True for a name that only a server of ours, or this machine, can give a meaning to."""
    return image.startswith(f"{LOCAL_REGISTRY}/")


def container_name(workspace_name: str) -> str:
    return f"trailer-{workspace_name}"


def next_container_name(workspace_name: str) -> str:
    return f"trailer-{workspace_name}-next"


def spare_container_name(workspace_id: str) -> str:
    """Takes the place of the one above where another container has that name."""
    return f"trailer-{workspace_id}-next"


def aside_container_name(workspace_id: str) -> str:
    """For a moment, while workspaces exchange their names."""
    return f"trailer-{workspace_id}-aside"


def prerequisite_name(kind: str) -> str:
    """With a dot, which no workspace's name can have."""
    return f"trailer.{kind}"


def link_name(workspace_id: str) -> str:
    """The network between one workspace and the host's router."""
    return f"{_LINK}{workspace_id}"


def is_link_name(name: str) -> bool:
    return name.startswith(_LINK)


def network_name(name: str) -> str:
    return f"trailer-{name}"


def volume_name(name: str) -> str:
    return f"trailer-{name}"


def build_ref(image_id: str) -> str:
    """The tag a build or snapshot result gets on its host; unique and stable per image."""
    return f"trailer/{image_id}:latest"


def commit_ref(ref: str, build_id: str) -> str:
    """What the engine calls a snapshot's image until it is known to be the wanted one. Of each
    try its own: a commit outlives its caller, and may end after a newer one."""
    return f"{commit_prefix(ref)}-{build_id}"


def commit_prefix(ref: str) -> str:
    """How such names begin; those of older agents end here."""
    return ref.rpartition(":")[0] + ":committed"


def build_mark(host_key: str, image_id: str, host_id: str) -> str:
    """A host name that only this host's agent gives to the containers of a build's steps."""
    return f"trailer-build-{signature(host_key, 'build', image_id, host_id)[:32]}"


def forward_auth_key(host_key: str, workspace_id: str, host_name: str, host_id: str) -> str:
    """Proves to the server that a question comes from this host's router."""
    return signature(host_key, "forward-auth", f"{workspace_id} {host_name}", host_id)


def signature(host_key: str, kind: str, object_id: str, host_id: str) -> str:
    """Proves that this host's agent made an object: image authors cannot forge it in a LABEL."""
    text = f"{kind}\0{object_id}\0{host_id}".encode()
    return hmac.new(host_key.encode(), text, hashlib.sha256).hexdigest()


def signature_is_valid(
    host_key: str, kind: str, object_id: str, host_id: str, candidate: str
) -> bool:
    return hmac.compare_digest(signature(host_key, kind, object_id, host_id), candidate)
