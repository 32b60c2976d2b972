"""Watches the free space of the engine's disk; says when work that was held back may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from agent.work.disk import DiskBrake

_EVERY = 2.0


class RoomWatch:
    """Reads a number of the file system: no engine call, no write."""

    def __init__(self, disk: DiskBrake, *, on_room: Callable[[], None]) -> None:
        self._disk = disk
        self._on_room = on_room

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(_EVERY):
            if self._disk.is_released():
                self._on_room()
