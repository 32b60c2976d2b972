"""The desired state in force and the host's settings: written by the poll, read by everyone."""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING

import msgspec

from agent.diff.view import object_key
from agent.host_policy import HostPolicy
from agent.logs import hush
from agent.protocol.state import HostSettings, HostState
from agent.steps import IMAGE, NETWORK, PREREQUISITE, VOLUME, WORKSPACE
from agent.store.document import load_document, save_document

if TYPE_CHECKING:
    from pathlib import Path

    from agent.store.database import Database

_SHORTEST, _LONGEST = 1.0, 3600.0


class Target:
    """Settings may be newer than the document: the heartbeat's reply carries them too."""

    def __init__(
        self, state_dir: Path, database: Database, policy: HostPolicy | None = None
    ) -> None:
        self._state_dir = state_dir
        self._policy = policy or HostPolicy()
        self._database = database
        self._lock = threading.Lock()
        self._state = load_document(state_dir)
        if self._state is not None:
            hush(self._state)
        self._settings = self._allowed(self._state.settings if self._state else HostSettings())
        # False: these are defaults that no server has spoken of.
        self._are_settings_told = self._state is not None
        self._revisions = _revisions(self._state)
        self.etag = ""

    def state(self) -> HostState | None:
        with self._lock:
            state, settings = self._state, self._settings
        return state and msgspec.structs.replace(state, settings=settings)

    def settings(self) -> HostSettings:
        with self._lock:
            return self._settings

    def maintenance(self) -> int | None:
        """The number of the newest window; None until the server has told."""
        with self._lock:
            return self._settings.maintenance if self._are_settings_told else None

    def accept(self, state: HostState, *, etag: str) -> None:
        hush(state)
        save_document(self._state_dir, state)
        with self._lock:
            self._state = state
            self._settings = self._allowed(state.settings)
            self._are_settings_told = True
            self._revisions = _revisions(state)
            self.etag = etag

    def apply_settings(self, settings: HostSettings) -> bool:
        """True when something changed."""
        settings = self._allowed(settings)
        with self._lock:
            changed = settings != self._settings
            self._settings = settings
            self._are_settings_told = True
        return changed

    def _allowed(self, settings: HostSettings) -> HostSettings:
        return self._policy.settings(clamped(settings))

    def builds(self) -> frozenset[str]:
        """The newest build of each image."""
        with self._lock:
            images = self._state.images if self._state else ()
        return frozenset(image.build.id for image in images if image.build)

    def revisions(self) -> dict[str, int]:
        with self._lock:
            return dict(self._revisions)

    def revision(self, key: str) -> int | None:
        with self._lock:
            return self._revisions.get(key)

    # --- going back in time -------------------------------------------------------------------

    def hold_removals(self, state: HostState) -> str:
        """A document older than one already seen is a restored backup, whatever it says itself."""
        epoch, version = self._newest()
        if state.restored:
            return (
                "The server was restored from a backup; nothing is removed until an administrator "
                "confirms its state."
            )
        if state.state_epoch < epoch:
            return (
                "The server's state is older than the one that was confirmed last; "
                "confirm it on the server."
            )
        if state.state_epoch == epoch and state.version < version:
            return (
                f"The server's state went back from version {version} to {state.version}; "
                "confirm it on the server."
            )
        return ""

    def brake_is_released(self, state: HostState) -> bool:
        """An admin confirmed a restored database by raising the state epoch."""
        epoch, _ = self._newest()
        return not state.restored and 0 <= epoch < state.state_epoch

    def latched(self) -> frozenset[str]:
        """Workspaces whose removal the brake held; kept over a restart of the agent."""
        return frozenset((self._database.get_meta("latched") or "").split())

    def latch(self, workspace_ids: tuple[str, ...]) -> None:
        if self.latched() != frozenset(workspace_ids):
            self._database.set_meta("latched", " ".join(workspace_ids))

    def settled(self, state: HostState) -> None:
        """A cycle without held removals: this version is the newest truth."""
        if (state.state_epoch, state.version) > self._newest():
            self._database.set_meta("newest", f"{state.state_epoch} {state.version}")

    def _newest(self) -> tuple[int, int]:
        epoch, _, version = (self._database.get_meta("newest") or "-1 0").partition(" ")
        return int(epoch), int(version)


def clamped(settings: HostSettings) -> HostSettings:
    """Hostile or mistyped intervals never make a busy loop or a silent agent."""
    return msgspec.structs.replace(
        settings,
        reconcile_interval=_clamp(settings.reconcile_interval),
        heartbeat_interval=_clamp(settings.heartbeat_interval),
        build_timeout=max(_SHORTEST, settings.build_timeout),
        pull_timeout=max(_SHORTEST, settings.pull_timeout),
        build_idle_timeout=max(_SHORTEST, settings.build_idle_timeout),
        update_interval=max(_SHORTEST, settings.update_interval),
    )


def _clamp(seconds: float) -> float:
    return min(_LONGEST, max(_SHORTEST, seconds))


def _revisions(state: HostState | None) -> dict[str, int]:
    if state is None:
        return {}
    kinds = (
        (WORKSPACE, state.workspaces),
        (NETWORK, state.networks),
        (VOLUME, state.volumes),
        (IMAGE, state.images),
    )
    found = {object_key(kind, item.id): item.revision for kind, items in kinds for item in items}
    for needed in state.prerequisites:
        content = msgspec.json.encode(needed, order="deterministic")
        found[object_key(PREREQUISITE, needed.kind)] = zlib.crc32(content)
    return found
