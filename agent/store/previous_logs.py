"""The last log of a container that was replaced, one file per workspace, kept with timestamps."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

from agent import clock
from agent.errors import EngineError
from agent.runtime.session_port import LogRequest
from agent.store.identity import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from agent.runtime.port import Runtime

KEPT_BYTES: Final = 1024 * 1024
_LINES: Final = 20_000
# A replacement waits no longer than this for the old log.
_DEADLINE: Final = 2.0
_ID: Final = re.compile(r"[A-Za-z0-9-]+")
_NEXT: Final = "-next"


class PreviousLogs:
    def __init__(self, state_dir: Path, runtime: Runtime) -> None:
        self._folder = state_dir / "previous-logs"
        self._runtime = runtime

    def keep(self, workspace_id: str, container_id: str) -> None:
        """Best effort: whatever goes wrong here, the container is removed all the same."""
        path = self._path(workspace_id)
        if path is None:
            return
        try:
            # A replacement that never came up is not what ran before.
            if not self._runtime.container_run(container_id).name.endswith(_NEXT):
                write_private(path, self._tail(container_id))
        except (EngineError, OSError):
            return

    def read(self, workspace_id: str, *, tail: int | None, timestamps: bool) -> bytes | None:
        path = self._path(workspace_id)
        try:
            data = path.read_bytes() if path else None
        except FileNotFoundError:
            return None
        if data is None:
            return None
        lines = data.splitlines(keepends=True)
        wanted = lines if tail is None else lines[max(0, len(lines) - tail) :]
        return b"".join(wanted if timestamps else [_without_stamp(line) for line in wanted])

    def forget(self, workspace_id: str) -> None:
        path = self._path(workspace_id)
        if path is not None:
            path.unlink(missing_ok=True)

    def _tail(self, container_id: str) -> bytes:
        deadline = clock.monotonic() + _DEADLINE
        stream = self._runtime.container_logs(
            container_id, LogRequest(tail=_LINES, timestamps=True)
        )
        cut = threading.Timer(_DEADLINE, stream.close)
        cut.start()
        kept = b""
        try:
            for data in stream:
                kept = (kept + data)[-KEPT_BYTES:]
                if clock.monotonic() >= deadline:
                    break
        finally:
            cut.cancel()
            stream.close()
        # What was cut off in front leaves half a line.
        return kept if len(kept) < KEPT_BYTES else kept.partition(b"\n")[2]

    def _path(self, workspace_id: str) -> Path | None:
        return self._folder / f"{workspace_id}.log" if _ID.fullmatch(workspace_id) else None


def _without_stamp(line: bytes) -> bytes:
    stamp, space, text = line.partition(b" ")
    return text if space and stamp.endswith(b"Z") else line
