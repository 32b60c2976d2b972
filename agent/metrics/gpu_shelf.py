"""Which GPUs answer now: what heartbeats read anyway, for the cycles to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.protocol.session import Gpu


class GpuShelf:
    """Written by the heartbeat, read by the cycle; one whole set is swapped for another."""

    def __init__(self) -> None:
        self._present: frozenset[str] | None = None

    def present(self) -> frozenset[str] | None:
        return self._present

    def saw(self, gpus: tuple[Gpu, ...] | None) -> bool:
        """True when cards came or went. While nobody can tell, the last that was told stands."""
        if gpus is None:
            return False
        names = frozenset(name for gpu in gpus for name in (gpu.id, str(gpu.index)))
        moved = self._present is not None and names != self._present
        self._present = names
        return moved
