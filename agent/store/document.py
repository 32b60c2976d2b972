"""The last good state document on disk, so that an agent without a server keeps its workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.errors import RejectedDocument
from agent.protocol.state import HostState, decode_state, encode_state
from agent.store.identity import write_private

if TYPE_CHECKING:
    from pathlib import Path


def load_document(state_dir: Path) -> HostState | None:
    try:
        return decode_state(_path(state_dir).read_bytes())
    except (FileNotFoundError, msgspec.MsgspecError):
        # Unreadable is the same as absent: the server sends it again.
        return None


def save_document(state_dir: Path, state: HostState) -> None:
    write_private(_path(state_dir), encode_state(state))


def read_document(body: bytes, *, host_id: str) -> HostState:
    """Decoded and checked whole; raises RejectedDocument with the reason."""
    try:
        state = decode_state(body)
    except msgspec.MsgspecError as problem:
        raise RejectedDocument(f"The state document cannot be read: {problem}") from problem
    if state.host_id != host_id:
        raise RejectedDocument(f"The state document is for host {state.host_id}, not this one.")
    kinds = (state.networks, state.volumes, state.images, state.workspaces, state.tombstones)
    for items in kinds:
        _refuse_doubles([item.id for item in items], "id")
    _refuse_doubles([workspace.spec.name for workspace in state.workspaces], "workspace name")
    _refuse_doubles([network.name for network in state.networks], "network name")
    return state


def _refuse_doubles(values: list[str], what: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise RejectedDocument(f"The state document holds the {what} {value} twice.")
        seen.add(value)


def _path(state_dir: Path) -> Path:
    return state_dir / "state.json"
