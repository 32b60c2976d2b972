"""The token that the agent shows, and the file it is kept in: never newer in use than on the disk.

A token is replaced while the agent works. Whoever else reads the file, such as the trial of a new
agent, the overseer or the agent before it, finds one that works there at every moment.
"""

from __future__ import annotations

import logging
import threading
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

import msgspec

from agent import clock
from agent.errors import ConfigError
from agent.store.identity import identity_lock, load_identity, save_identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.store.identity import Identity

log = logging.getLogger(__name__)
# With a new token every day: two months of backups.
EARLIER_KEPT: Final = 60
# Seconds until a server that knows none of them is asked about all of them again.
_SEARCH_AGAIN: Final = 240.0


class StoredToken:
    """`writes` is off for whoever may change nothing: it follows the file, and searches for
    itself alone."""

    def __init__(self, state_dir: Path, identity: Identity, *, writes: bool = True) -> None:
        self._state_dir = state_dir
        self._identity = identity
        self._writes = writes
        self._token = identity.token
        self._search = threading.Lock()
        self._searched_at = float("-inf")

    def current(self) -> str:
        return self._token

    def replace(self, new: str) -> bool:
        """In use only when it is on the disk; an OSError leaves everything as it was. False when
        another process has changed the file: what it stored there is newer than our question."""
        with identity_lock(self._state_dir):
            stored = self._stored()
            if stored is None or not compare_digest(stored.token, self._token):
                return False
            self._save(stored, new)
        self._token = new
        return True

    def after_refusal(self, refused: str, is_known: Callable[[str], bool | None]) -> str:
        """A token that the server knows instead of the refused one, or empty. `is_known` asks the
        server; None means that it gave no clear answer."""
        with self._search:
            if self._token != refused:
                # Another thread was faster.
                return self._token
            stored = self._stored()
            if stored is not None and stored.token != refused and is_known(stored.token):
                self._token = stored.token
                return self._token
            if clock.monotonic() - self._searched_at < _SEARCH_AGAIN:
                return ""
            return self._found_again(stored or self._identity, refused, is_known)

    def _found_again(
        self, known: Identity, refused: str, is_known: Callable[[str], bool | None]
    ) -> str:
        """After a restore the server knows one of those that it had forgotten."""
        for token in known.earlier:
            verdict = is_known(token) if token != refused else False
            if verdict is None:
                return ""
            if verdict:
                log.warning("the server knows an earlier token of this agent: it was restored")
                self._take(known, token)
                return token
        self._searched_at = clock.monotonic()
        return ""

    def _take(self, known: Identity, token: str) -> None:
        self._token = token
        if not self._writes:
            return
        try:
            with identity_lock(self._state_dir):
                stored = self._stored()
                if stored is not None and compare_digest(stored.token, known.token):
                    self._save(stored, token)
        except OSError as problem:
            log.warning("the token could not be stored: %s", problem)

    def _save(self, stored: Identity, token: str) -> None:
        earlier = (stored.token, *(one for one in stored.earlier if one != token))
        save_identity(
            self._state_dir,
            msgspec.structs.replace(stored, token=token, earlier=earlier[:EARLIER_KEPT]),
        )

    def _stored(self) -> Identity | None:
        """Of this host; the folder may have been given to another one."""
        try:
            stored = load_identity(self._state_dir)
        except (ConfigError, OSError):
            return None
        return stored if stored and stored.host_id == self._identity.host_id else None
