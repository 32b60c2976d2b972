"""What `works` needs of one piece of long work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agent.protocol.report import BuildStatus
    from agent.steps import BuildImage, PullImage, SnapshotImage

    LongStep = PullImage | BuildImage | SnapshotImage


class Work(Protocol):
    """`lane` names those that share places; `made_id` is the image on the engine, if this work
    made it."""

    @property
    def lane(self) -> str: ...

    @property
    def step(self) -> LongStep: ...

    @property
    def made_id(self) -> str: ...

    @property
    def broke_off(self) -> bool:
        """The engine did: it may have left what it removes otherwise."""
        ...

    @property
    def is_urgent(self) -> bool:
        """Begins even on a full disk."""
        ...

    @property
    def is_cancelled(self) -> bool: ...

    def claims(self) -> tuple[str, ...]:
        """Keys of the objects that nobody else may work on."""
        ...

    def cancel(self, reason: str) -> None: ...

    def leave(self) -> None:
        """The agent stops: end without a result."""
        ...

    def tidy(self, patience: float) -> None:
        """What shall not stay of it, as far as it can go within these seconds."""
        ...

    def run(self) -> BuildStatus | None:
        """None when it was left or interrupted: it has no end yet."""
        ...
