"""Forgets what was known of another host, so that nothing of it counts as ours any more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# The operator's policy stays: it is of the machine, not of the host's row on some server.
_FILES: Final = (
    *("state.json", "overseer.json"),
    *("agent.sqlite3", "agent.sqlite3-wal", "agent.sqlite3-shm"),
)
_FOLDER: Final = "previous-logs"


def forget_host(state_dir: Path) -> None:
    for name in _FILES:
        (state_dir / name).unlink(missing_ok=True)
    shutil.rmtree(state_dir / _FOLDER, ignore_errors=True)
