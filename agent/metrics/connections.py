"""Open connections of containers: the kernel's tables are dear to read, so they seldom are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import clock
from agent.metrics import texts

if TYPE_CHECKING:
    from pathlib import Path

# A table is searched through the sockets of the whole machine, milliseconds each: so much of a
# sample may go into that, the rest waits for the next ones.
_BUDGET = 0.025
# A table is read again after so long though the number of sockets is the same.
_OLD = 300.0


class ConnectionReader:
    """The number of sockets, which is cheap, tells whether a table is worth reading again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], int]] = {}
        self._spent = 0.0

    def begin(self, container_ids: set[str]) -> None:
        """A new sample, of these containers."""
        self._spent = 0.0
        self._known = {i: known for i, known in self._known.items() if i in container_ids}

    def read(self, container_id: str, folder: Path) -> int | None:
        """The latest known; None until its table was read once."""
        sockets = texts.sockets_in_use(_text(folder / "sockstat"), _text(folder / "sockstat6"))
        known = self._known.get(container_id)
        if sockets is None:
            return None
        key = (sockets, int(clock.monotonic() / _OLD))
        if (known is None or known[0] != key) and self._spent < _BUDGET:
            known = (key, self._count(folder))
            self._known[container_id] = known
        return known[1] if known is not None else None

    def _count(self, folder: Path) -> int:
        begun = clock.monotonic()
        found = texts.open_connections(_text(folder / "tcp"), _text(folder / "tcp6"))
        self._spent += clock.monotonic() - begun
        return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
