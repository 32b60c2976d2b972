"""What the overseer, and the agent that calls it, need of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agent.engine_requests import Credential
    from agent.overseer.spawn import Self
    from agent.overseer.world import World


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """`problem`: why nobody gave it, so that this is the one which was here before."""

    image_id: str
    problem: str = ""


class MaintenanceEngine(Protocol):
    """What a maintenance window asks of the engine; both answer in words."""

    def disk_report(self) -> str: ...

    def prune_images(self) -> str: ...


class AgentEngine(MaintenanceEngine, Protocol):
    """One engine call a method, more or less. Errors are `EngineError`s."""

    def world(self) -> World: ...

    def check_names(self) -> None:
        """Raise when a stranger holds one of the names that a replacement needs."""
        ...

    def describe(self, container_id: str) -> Self: ...

    def pull(self, image: str, credential: Credential | None) -> Pulled:
        """The newest of that name, or the one that is here when its registry does not give it.
        The name says which registry that is."""
        ...

    def image_id(self, image: str) -> str: ...

    def architecture(self) -> str:
        """Of the machine, in the engine's word: amd64, arm64."""
        ...

    def load(self, archive: IO[bytes]) -> None:
        """Take in what `docker save` wrote, compressed or not."""
        ...

    def create_next(self, like: str, image: str) -> None: ...

    def create_current(self, like: str, image: str, *, made_by: str) -> None: ...

    def start(self, container_id: str) -> None: ...

    def stop(self, container_id: str) -> None: ...

    def rename(self, container_id: str, name: str) -> None: ...

    def remove(self, container_id: str) -> None: ...

    def is_healthy(self, container_id: str) -> bool: ...

    def is_up(self, container_id: str) -> bool: ...

    def exit_code(self, container_id: str) -> int | None:
        """None while it runs, and when it never did."""
        ...

    def log_tail(self, container_id: str) -> str: ...

    def spawn(self, like: str) -> bool:
        """False: there is one already, so the name is taken."""
        ...

    def overseer_state(self) -> str:
        """`running`, `ended`, or empty when there is none."""
        ...

    def remove_overseer(self) -> None: ...
