"""Open terminals on disk: an agent that was killed ends their processes when it is back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.runtime.session_port import ExecRecord
from agent.store.identity import write_private

if TYPE_CHECKING:
    from pathlib import Path


class TerminalFiles:
    """One small file per terminal, named by its session."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "terminals"

    def save(self, session_id: str, record: ExecRecord) -> None:
        write_private(self._folder / f"{session_id}.json", msgspec.json.encode(record))

    def forget(self, session_id: str) -> None:
        (self._folder / f"{session_id}.json").unlink(missing_ok=True)

    def all(self) -> dict[str, ExecRecord]:
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                found[path.stem] = msgspec.json.decode(path.read_bytes(), type=ExecRecord)
            except (OSError, msgspec.MsgspecError):
                path.unlink(missing_ok=True)
        return found
