"""The logs of the builds at work: one shipper each, which stays until the build has an end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent.work.log_shipper import LogShipper

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.server.port import Server


class BuildLogs:
    """The tries of one build share a shipper: two would write into each other's offsets."""

    def __init__(self, server: Server, *, epoch: Callable[[], int]) -> None:
        self._server = server
        self._epoch = epoch
        self._lock = threading.Lock()
        self._shippers: dict[str, LogShipper] = {}

    def open(self, build_id: str) -> None:
        with self._lock:
            if build_id not in self._shippers:
                self._shippers[build_id] = LogShipper(self._server, build_id, epoch=self._epoch)

    def write(self, build_id: str, text: str) -> None:
        shipper = self._shippers.get(build_id)
        if shipper is not None:
            shipper.write(text)

    def close(self, build_id: str, *, patience: float = 0.0) -> int | None:
        """How many bytes the log will have; None if there is none."""
        with self._lock:
            shipper = self._shippers.pop(build_id, None)
        if shipper is None:
            return None
        shipper.close(patience=patience)
        return shipper.total_bytes
