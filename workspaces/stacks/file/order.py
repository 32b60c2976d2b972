"""The order in which services start: what they depend on first."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from workspaces.stacks.file.errors import StackFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workspaces.stacks.file.types import ServiceSpec


def start_order(services: Sequence[ServiceSpec]) -> tuple[tuple[ServiceSpec, ...], ...]:
    """Groups: all of one group may start at once, when the groups before it are up."""
    by_name = {service.name: service for service in services}
    sorter = TopologicalSorter(
        {service.name: [needed.service for needed in service.depends_on] for service in services}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise StackFileError(
            f"depends_on goes in a circle: {circle}. Remove one of these dependencies."
        ) from error
    groups = []
    while sorter.is_active():
        ready = sorter.get_ready()
        groups.append(tuple(by_name[name] for name in sorted(ready)))
        sorter.done(*ready)
    return tuple(groups)
