"""The agent's identity file: token, host and label key, readable by its owner only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agent.errors import ConfigError
from agent.protocol.redaction import LIVE

if TYPE_CHECKING:
    from pathlib import Path


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """`host_key` signs the labels of what this agent makes. `enrolled_with` is the digest of the
    one-time token that bought this identity."""

    token: str
    host_id: str
    host_key: str
    host_name: str = ""
    enrolled_with: str = ""


def identity_path(state_dir: Path) -> Path:
    return state_dir / "identity.json"


def load_identity(state_dir: Path) -> Identity | None:
    path = identity_path(state_dir)
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = msgspec.json.decode(body, type=Identity)
    except msgspec.MsgspecError as problem:
        raise ConfigError(f"The identity file {path} cannot be read: {problem}") from problem
    LIVE.remember(found.token, found.host_key)
    return found


def save_identity(state_dir: Path, identity: Identity) -> None:
    LIVE.remember(identity.token, identity.host_key)
    write_private(identity_path(state_dir), msgspec.json.encode(identity))


def write_private(path: Path, body: bytes) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(body)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
