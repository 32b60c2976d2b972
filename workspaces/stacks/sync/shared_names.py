"""Services of two stacks that meet on one network under the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol.naming import container_name
from workspaces.models import Workspace
from workspaces.stacks.sync.names import workspace_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workspaces.stacks.file.types import ServiceSpec
    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.places import Places


def same_names(stack: Stack, places: Places, services: Iterable[ServiceSpec]) -> list[str]:
    """A sentence for each: who calls that name there reaches now the one, now the other. Whose
    the other is stays unsaid: the reader may not see that stack."""
    return [
        f"Service {service.name}: another stack has a service of this name on the network {key}. "
        f"Call it {container_name(workspace_name(stack, service.name))} there, or rename it."
        for service in services
        for key in service.networks
        if Workspace.objects.filter(
            networks=places.networks[key], service=service.name, stack__isnull=False
        )
        .exclude(stack=stack.pk)
        .exists()
    ]
