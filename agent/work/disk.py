"""The disk brake: below the host's limit of free space no pull, build or snapshot begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.host_facts import free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.state import HostSettings

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


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
            f"Waiting for disk space: {_size(free)} are free where the engine keeps its data, "
            f"and this host keeps {_size(least)} free."
        )

    def is_released(self) -> bool:
        """True once after somebody was held back and there is room again."""
        if not self._held_back or self.message():
            return False
        self._held_back = False
        return True


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
