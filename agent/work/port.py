"""What `works` needs of one piece of long work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agent.protocol.report import BuildStatus
    from agent.steps import BuildImage, PullImage, SnapshotImage

    LongStep = PullImage | BuildImage | SnapshotImage


class Work(Protocol):
    """`lane` names those that share places; `made_it` says that the image is this agent's."""

    @property
    def lane(self) -> str: ...

    @property
    def step(self) -> LongStep: ...

    @property
    def made_it(self) -> bool: ...

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

    def run(self) -> BuildStatus | None:
        """None when it was left or interrupted: it has no end yet."""
        ...
