"""Links: a network for each workspace that the managed router serves, shared with nobody else.

On one network for all, every workspace would reach its neighbours' ports past the router, which is
what asks who may pass. The router joins and leaves links while it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.diff.networks import Ready
from agent.diff.prerequisites import owned_prerequisites
from agent.diff.view import View, object_key
from agent.engine_requests import NetworkRequest
from agent.protocol import naming
from agent.protocol.prerequisites import ROUTER, ROUTER_NETWORK
from agent.routing.routes import FILES, routed_urls
from agent.steps import (
    PREREQUISITE,
    ConnectNetwork,
    CreateContainer,
    CreateNetwork,
    DisconnectNetwork,
    Ref,
    RemoveNetwork,
)

if TYPE_CHECKING:
    from agent.observed import ObservedContainer, ObservedNetwork
    from agent.plan import PlanBuilder

_KEY: Final = object_key(PREREQUISITE, ROUTER)
# Room for a workspace, its successor, the router and its successor.
_PREFIX: Final = 28


def diff_links(view: View, plan: PlanBuilder) -> dict[str, Ready]:
    """By workspace. Where none can be made now, the workspace comes up without and joins later."""
    may_change = not view.is_busy(_KEY) and _KEY not in view.knows.held
    links = {
        workspace_id: _link(view, plan, workspace_id, may_make=may_change)
        for workspace_id in linked_workspaces(view)
    }
    router = _standing_router(view, plan)
    if may_change and router is not None:
        joined = {place.network_id for place in router.attachments}
        for link in links.values():
            if link.ref is not None and link.ref.id not in joined:
                _join(plan, router, link.ref, after=link.after)
        _leave(view, plan, router)
    return links


def uses_links(view: View) -> bool:
    """Not on a network that the operator named: whoever is on it is the operator's choice."""
    router = view.desired.settings.router
    return router.managed and router.mode == FILES and router.network == ROUTER_NETWORK


def linked_workspaces(view: View) -> tuple[str, ...]:
    if not uses_links(view):
        return ()
    router = view.desired.settings.router
    return tuple(sorted(w.id for w in view.desired.workspaces if routed_urls(w.spec, router)))


def unreached_workspaces(view: View, router: ObservedContainer) -> frozenset[str]:
    """Those on whose link the router is not: it would look for them on its other networks."""
    joined = {place.network_name for place in router.attachments}
    linked = linked_workspaces(view)
    return frozenset(i for i in linked if naming.link_name(i) not in joined)


def _link(view: View, plan: PlanBuilder, workspace_id: str, *, may_make: bool) -> Ready:
    name = naming.link_name(workspace_id)
    found = next((n for n in _links(view) if n.name == name), None)
    if found is not None:
        return Ready(ref=Ref(id=found.id))
    if not may_make:
        return Ready()
    step = CreateNetwork(
        key=_KEY,
        name=ROUTER,
        cause="a workspace's way to the router",
        request=NetworkRequest(
            name=name,
            prefix=_PREFIX,
            labels=view.labels_for(PREREQUISITE, naming.LABEL_PREREQUISITE, ROUTER),
        ),
    )
    node = plan.add(step)
    return Ready(ref=Ref(node=node), after=(node,))


def _standing_router(view: View, plan: PlanBuilder) -> ObservedContainer | None:
    """None while it is made or replaced: the next cycle has it join."""
    if any(
        node.step.key == _KEY and isinstance(node.step, CreateContainer) for node in plan.nodes
    ):
        return None
    found = owned_prerequisites(view, ROUTER)
    return found[0] if found and found[0].is_up else None


def _join(
    plan: PlanBuilder, router: ObservedContainer, network: Ref, *, after: tuple[int, ...]
) -> None:
    step = ConnectNetwork(
        key=_KEY,
        name=ROUTER,
        cause="a workspace's way to the router",
        container=Ref(id=router.id),
        network=network,
    )
    plan.add(step, after=after)


def _leave(view: View, plan: PlanBuilder, router: ObservedContainer) -> None:
    """A link whose workspace has left it; it goes with its last user."""
    if view.knows.hold_removals:
        return
    wanted = {naming.link_name(workspace_id) for workspace_id in linked_workspaces(view)}
    for network in _links(view):
        users = view.users_of(network)
        if network.name in wanted or not set(users) <= {router.id}:
            continue
        cause, left = "no URL needs it", tuple[int, ...]()
        if users:
            out = DisconnectNetwork(
                key=_KEY,
                name=ROUTER,
                cause=cause,
                container=Ref(id=router.id),
                network=Ref(id=network.id),
            )
            left = (plan.add(out, cleanup=True),)
        gone = RemoveNetwork(key=_KEY, name=ROUTER, cause=cause, engine_id=network.id)
        plan.add(gone, after=left, cleanup=True)


def _links(view: View) -> list[ObservedNetwork]:
    return [
        network
        for network in view.observed.networks
        if naming.is_link_name(network.name) and view.is_platform_network(network)
    ]
