"""The disk brake: below the host's limit of free space no pull, build or snapshot begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.host_facts import free_bytes
from agent.sizes import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.state import HostSettings


class DiskBrake:
    """`root` is where the engine keeps its data, empty while unknown. `free` reads how much room
    is there, None where that cannot be seen (an agent in a container without the host's folder):
    then there is no brake."""

    def __init__(
        self,
        *,
        root: Callable[[], str],
        settings: Callable[[], HostSettings],
        free: Callable[[str], int | None] = free_bytes,
    ) -> None:
        self._root = root
        self._settings = settings
        self._free = free
        self._held_back = False

    def message(self) -> str:
        """Empty while there is room; otherwise a sentence for builds and for the host."""
        least = self._settings().disk_free_min_bytes
        root = self._root()
        if least <= 0 or not root:
            return ""
        free = self._free(root)
        if free is None or free >= least:
            return ""
        self._held_back = True
        return (
            f"Waiting for disk space: {in_words(free)} are free where the engine keeps its data, "
            f"and this host keeps {in_words(least)} free."
        )

    def is_released(self) -> bool:
        """True once after somebody was held back and there is room again."""
        if not self._held_back or self.message():
            return False
        self._held_back = False
        return True
