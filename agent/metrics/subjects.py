"""Which containers are sampled: what the cycles saw anyway, so that a sample asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.metrics.counters import Subject
from agent.protocol import naming

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.observed import ObservedContainer


class Subjects:
    """Written by the cycle, read by the heartbeat; one whole tuple is swapped for another."""

    def __init__(self) -> None:
        self._running: tuple[Subject, ...] = ()

    def running(self) -> tuple[Subject, ...]:
        return self._running

    def saw(self, containers: Iterable[ObservedContainer], owned_ids: frozenset[str]) -> None:
        found: dict[str, Subject] = {}
        for container in containers:
            workspace_id = container.labels.get(naming.LABEL_WORKSPACE, "")
            if not workspace_id or container.id not in owned_ids or not container.is_up:
                continue
            # A second container is the successor, which counts once it has the name.
            if workspace_id not in found or not container.name.endswith("-next"):
                found[workspace_id] = Subject(
                    workspace_id=workspace_id,
                    container_id=container.id,
                    pid=container.pid,
                    run=f"{container.id} {container.started_at} {container.pid}",
                    memory_limit_bytes=container.memory_bytes,
                )
        self._running = tuple(found.values())
