"""What the host's router needs: the file of routes, its network, and labels on containers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from agent.diff.links import unreached_workspaces
from agent.diff.prerequisites import owned_prerequisites
from agent.diff.view import View, object_key
from agent.protocol.compare import REPLACE
from agent.protocol.prerequisites import ROUTER
from agent.protocol.report import FieldChange
from agent.routing.routes import FILES, LABELS, Route, routed_urls, routes_of
from agent.routing.traefik import (
    NETWORK_LABEL,
    auth_addresses,
    route_labels,
    router_labels,
    routes_file,
)
from agent.steps import PREREQUISITE, CreateContainer, Ref, WriteRoutes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.observed import ObservedContainer, ObservedNetwork
    from agent.plan import PlanBuilder
    from agent.protocol.state import DesiredWorkspace


def diff_routes(view: View, plan: PlanBuilder) -> None:
    """Written whole whenever they differ from what this router was given; nothing restarts."""
    router = view.desired.settings.router
    key = object_key(PREREQUISITE, ROUTER)
    found = owned_prerequisites(view, ROUTER)
    if router.mode != FILES or not found or view.is_busy(key) or key in view.knows.held:
        return
    if any(node.step.key == key and isinstance(node.step, CreateContainer) for node in plan.nodes):
        # It is just being made or replaced: the next cycle tells the new one.
        return
    enabled = view.desired.settings.enabled
    unreached = unreached_workspaces(view, found[0])
    content = routes_file(
        (workspace.spec.name, route)
        for workspace in view.desired.workspaces
        if enabled and workspace.desired_state == "running" and workspace.id not in unreached
        for route in _routes(view, workspace, workspace.revision)
    )
    written = f"{found[0].id} {hashlib.sha256(content).hexdigest()}"
    if written != view.knows.routes:
        step = WriteRoutes(
            key=key,
            name=ROUTER,
            cause="routes changed",
            container=Ref(id=found[0].id),
            content=content,
            mark=written,
        )
        plan.add(step)


def router_network(view: View, workspace: DesiredWorkspace) -> ObservedNetwork | None:
    """The network on which the router reaches this workspace, if it has anything to reach."""
    router = view.desired.settings.router
    if not router.network or not routed_urls(workspace.spec, router):
        return None
    return next((n for n in view.observed.networks if n.name == router.network), None)


def labels_for_router(
    view: View, workspace: DesiredWorkspace, inherited: Mapping[str, str]
) -> dict[str, str]:
    """None where no router reads labels and the image has none that one could read."""
    router = view.desired.settings.router
    by_labels = router.mode == LABELS
    if not by_labels and not any(key.lower().startswith("traefik.") for key in inherited):
        return {}
    routes = _routes(view, workspace, workspace.revision) if by_labels else ()
    return route_labels(routes, network=router.network, inherited=inherited)


def routing_changes(
    view: View, workspace: DesiredWorkspace, container: ObservedContainer, *, revision: int
) -> tuple[FieldChange, ...]:
    """Labels can't be changed on a living container. `revision` is the one it was made for."""
    router = view.desired.settings.router
    wanted: dict[str, str] = {}
    if router.mode == LABELS:
        routes = _routes(view, workspace, revision)
        wanted = route_labels(routes, network=router.network if routes else "", inherited={})
    have = router_labels(container.labels)
    if have != router_labels(wanted):
        urls = msgspec.to_builtins(tuple(sorted(workspace.spec.urls)))
        return (FieldChange(field="urls", old=sorted(have), new=urls, effect=REPLACE),)
    network = container.labels.get(NETWORK_LABEL, "")
    if NETWORK_LABEL in wanted and wanted[NETWORK_LABEL] != network:
        new = wanted[NETWORK_LABEL]
        return (FieldChange(field="router_network", old=network, new=new, effect=REPLACE),)
    for key, address in auth_addresses(wanted).items():
        asked = container.labels.get(key, "")
        if asked != address:
            old, new = _place(asked), _place(address)
            new += " (with another key)" if old == new else ""
            return (FieldChange(field="forward_auth", old=old, new=new, effect=REPLACE),)
    return ()


def _place(address: str) -> str:
    """Where a router asks, without the key that lets it."""
    return address.partition("?")[0]


def _routes(view: View, workspace: DesiredWorkspace, revision: int) -> tuple[Route, ...]:
    return routes_of(
        workspace.id,
        workspace.spec,
        view.desired.settings.router,
        revision=revision,
        host_id=view.knows.host_id,
        host_key=view.knows.host_key,
    )
