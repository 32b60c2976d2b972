"""What a build with secrets may say: the same rule on the server and on the agent.

Such a build goes through the engine's BuildKit, which does more than the older builder that other
builds have: it runs whatever frontend a Dockerfile names, and keeps folders that all builds of an
engine share. Neither may be a way to somebody else's secrets or files.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import TYPE_CHECKING, Final

from agent.protocol.dockerfile import holds_text, instructions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# What an agent says in its heartbeat when it can do this.
CAPABILITY: Final = "build_secrets"
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
MOST: Final = 20
LONGEST_BYTES: Final = 64 * 1024

# Some versions take the directive with either sign and after other lines, or the file as JSON; all
# drop a first line that begins with #! before they look.
_SYNTAX: Final = re.compile(
    r"^\s*(?:#|//)\s*syntax\s*=|\A(?:#![^\n]*\n)?\s*\{", re.IGNORECASE | re.MULTILINE
)
_MOUNTS: Final = frozenset({"secret", "bind", "tmpfs"})
_RESERVED_ARGUMENT: Final = "BUILDKIT_"


def build_problem(dockerfile: str, build_args: Mapping[str, str], names: Collection[str]) -> str:
    """Why this may not be built with secrets of these names, or empty."""
    mounts = list(_mounts(dockerfile))
    if not names:
        if any(mount.get("type") == "secret" for mount in mounts):
            return (
                "The Dockerfile mounts a build secret, but the image has none. "
                "Add it under build_secrets."
            )
        return ""
    if _SYNTAX.search(dockerfile.removeprefix("\ufeff")):
        return (
            "A Dockerfile with build secrets may not choose its own frontend: that would get the "
            "secrets. Remove the line with syntax=."
        )
    if any(name.upper().startswith(_RESERVED_ARGUMENT) for name in build_args):
        return f"With build secrets no build argument may begin with {_RESERVED_ARGUMENT}."
    for words in instructions(dockerfile):
        if holds_text(words):
            return (
                "A Dockerfile with build secrets may hold no here-documents (<<). "
                "Put the text into a file of the image."
            )
    for mount in mounts:
        if mount.get("type", "bind") not in _MOUNTS:
            return (
                f"A mount of type {mount.get('type')} is not possible: everybody who builds on "
                "the host would share it. Mount type=secret, bind or tmpfs."
            )
    return ""


def secrets_mark(host_key: str, image_id: str, secrets: Mapping[str, str]) -> str:
    """A host name for the steps of a build: another one for other secrets, so that no step made
    with other secrets, or for another image, passes for one of this build. Empty without any."""
    if not secrets:
        return ""
    text = json.dumps([image_id, sorted(secrets.items())]).encode()
    digest = hmac.new(host_key.encode(), text, hashlib.sha256).hexdigest()
    return f"trailer-secrets-{digest[:32]}"


def _mounts(dockerfile: str) -> Iterator[dict[str, str]]:
    for words in instructions(dockerfile):
        rest = words[1:] if words[0].upper() == "ONBUILD" else words
        if not rest or rest[0].upper() != "RUN":
            continue
        for word in rest[1:]:
            if not word.startswith("--"):
                break
            flag, _, value = word.partition("=")
            if flag == "--mount":
                parts = (part.partition("=") for part in value.split(","))
                yield {key.strip().lower(): text.strip().lower() for key, _, text in parts}
