"""The agent's identity file: token, host and label key, readable by its owner only."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from agent.errors import ConfigError
from agent.protocol.redaction import LIVE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """`host_key` signs the labels of what this agent makes. `enrolled_with` is the digest of the
    one-time token that bought this identity. `earlier` are the tokens before the present one,
    newest first: a server that was restored from a backup knows one of those."""

    token: str
    host_id: str
    host_key: str
    host_name: str = ""
    enrolled_with: str = ""
    earlier: tuple[str, ...] = ()


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
    """On the disk when this returns: the server may forget the token before this one."""
    LIVE.remember(identity.token, identity.host_key)
    write_private(identity_path(state_dir), msgspec.json.encode(identity))
    folder = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def identity_lock(state_dir: Path) -> Iterator[None]:
    """Agents that share a state folder change the identity one after the other."""
    state_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(state_dir / "identity.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
