"""`python -m agent health`: whether the agent beside it is signed in and has looked lately.

The agent notes both in a small file. Times are the machine's monotonic clock, which all its
processes share: a wall clock that jumps makes nobody ill.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Three looks that every agent takes even when nothing happens.
FRESH_SECONDS: Final = 180.0


@dataclass(frozen=True)
class Note:
    """`signed_in`: the server knows this process's token; `looked_at`: the last whole cycle."""

    signed_in: bool = False
    looked_at: float = -1.0


def health_path(state_dir: Path, configured: str = "") -> Path:
    """Not in the state folder where another agent may share that: an image says where."""
    return Path(configured) if configured else state_dir / "health.json"


def trouble(note: Note | None, now: float) -> str:
    """In words; empty when all is well. Times after `now` are those of an earlier boot."""
    if note is None:
        return "The agent has not said anything yet."
    if not note.signed_in:
        return "The server has not accepted this agent."
    if not 0 <= now - note.looked_at <= FRESH_SECONDS:
        return "The agent has not finished a cycle lately."
    return ""


class HealthFile:
    """Written whole or not at all; a full disk makes the agent unhealthy, never dead."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._note = Note()
        self.write()

    def signed_in(self, known: bool) -> None:
        if known != self._note.signed_in:
            self._note = Note(known, self._note.looked_at)
            self.write()

    def looked(self) -> None:
        self._note = Note(self._note.signed_in, time.monotonic())
        self.write()

    def write(self) -> None:
        body = {"signed_in": self._note.signed_in, "looked_at": self._note.looked_at}
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            temporary.write_text(json.dumps(body))
            temporary.replace(self._path)
        except OSError:
            return


def read_note(path: Path) -> Note | None:
    try:
        body = json.loads(path.read_text())
        return Note(bool(body["signed_in"]), float(body["looked_at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def main() -> int:
    path = health_path(
        Path(os.environ.get("TRAILER_AGENT_STATE_DIR", ".")),
        os.environ.get("TRAILER_AGENT_HEALTH_FILE", ""),
    )
    sentence = trouble(read_note(path), time.monotonic())
    sys.stdout.write(f"{sentence or 'healthy'}\n")
    return 1 if sentence else 0
