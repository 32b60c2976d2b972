"""A way to the packet filter of the engine's machine."""

from __future__ import annotations

from typing import Protocol


class Guard(Protocol):
    """Errors are `GuardError`s and `EngineError`s."""

    def is_in_place(self) -> bool | None:
        """Reads only. None: a look would cost as much as setting the rule does."""
        ...

    def put(self) -> None: ...

    def remove(self) -> None:
        """Our own table and nothing else; also when it is not there."""
        ...
