"""Watches the free space of the engine's disk; says when the brake is put on or taken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from agent.work.disk import DiskBrake

_EVERY = 2.0


class RoomWatch:
    """Reads a number of the file system: no engine call, no write."""

    def __init__(self, disk: DiskBrake, *, on_turn: Callable[[], None]) -> None:
        self._disk = disk
        self._on_turn = on_turn

    def run(self, stop: threading.Event) -> None:
        is_low = bool(self._disk.message())
        while not stop.wait(_EVERY):
            if bool(self._disk.message()) != is_low:
                is_low = not is_low
                self._on_turn()
