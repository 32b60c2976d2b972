"""The name of a container: when it can be taken, and who steps aside for whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.diff.current import was_edited
from agent.protocol import naming
from agent.protocol.report import FieldChange
from agent.steps import Ref

if TYPE_CHECKING:
    from agent.diff.chains import Chain
    from agent.observed import ObservedContainer


def rename(
    chain: Chain, container: ObservedContainer, *, after: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """The steps that give it its name. One whose name somebody else holds stays under its
    present one, unless the two wait for each other."""
    wanted = naming.container_name(chain.name)
    aside = naming.aside_container_name(chain.workspace.id)
    if container.name == wanted:
        return ()
    here = Ref(id=container.id)
    if wanted in chain.view.containers_by_name:
        chain.plan.unfinished.add(chain.workspace.id)
        if container.name == aside or not _breaks_a_ring(chain, container):
            return ()
        moving = replace(chain, cause="exchanges its name with another workspace", changes=())
        return (moving.rename(here, aside, after=after),)
    edited = container.name == aside or was_edited(chain.view, chain.workspace, container)
    renaming = replace(
        chain,
        cause="name changed" if edited else "renamed outside Trailer",
        changes=(
            FieldChange(
                field="name",
                old=container.name.removeprefix("trailer-"),
                new=chain.name,
                effect="in_place",
            ),
        ),
    )
    event = "rename" if edited else "heal"
    return (renaming.rename(here, wanted, event=event, after=after),)


def _breaks_a_ring(chain: Chain, container: ObservedContainer) -> bool:
    """Whether everybody from the holder of the wanted name on waits for the next one's, and the
    last for this one's; then the one with the smallest id steps aside."""
    view = chain.view
    ring = [chain.workspace.id]
    wanted = naming.container_name(chain.name)
    while holder := view.containers_by_name.get(wanted):
        if holder.id == container.id:
            return chain.workspace.id == min(ring)
        workspace_id = holder.labels.get(naming.LABEL_WORKSPACE, "")
        workspace = view.desired_workspaces.get(workspace_id)
        if workspace is None or workspace_id in ring or not view.owns_container(holder):
            return False
        ring.append(workspace_id)
        wanted = naming.container_name(workspace.spec.name)
    return False
