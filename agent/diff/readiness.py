"""Whether a container of a workspace could be made now; if not, the finding that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.chains import Parts
from agent.diff.holders import held_by
from agent.diff.images import workspace_image
from agent.diff.links import uses_links
from agent.diff.networks import Ready
from agent.diff.routing import router_network
from agent.diff.status import finding, lost_gpus
from agent.protocol.prerequisites import network_problem
from agent.steps import Ref

if TYPE_CHECKING:
    from agent.diff.cleanup import Removals
    from agent.diff.view import View
    from agent.observed import ObservedContainer
    from agent.plan import PlanBuilder
    from agent.protocol.state import DesiredWorkspace


class Readiness:
    """`networks` and `volumes` say what a new container can rely on."""

    def __init__(
        self,
        view: View,
        plan: PlanBuilder,
        *,
        networks: dict[str, Ready],
        volumes: dict[str, Ready],
        links: dict[str, Ready],
        removals: Removals,
    ) -> None:
        self._view = view
        self._plan = plan
        self._networks = networks
        self._volumes = volumes
        self._links = links
        self._removals = removals

    def parts(self, workspace: DesiredWorkspace, main: ObservedContainer | None) -> Parts | None:
        """None (and a finding that says why) unless a new container could be made now."""
        state = workspace_image(self._view, workspace.spec)
        if state.image is None:
            self._blocked(workspace, main, state.problem, waiting=state.waiting)
            return None
        if workspace.spec.nested_virtualization and not self._view.knows.has_kvm:
            message = "Nested virtualisation needs /dev/kvm, which this host does not have."
            self._blocked(workspace, main, message, waiting=False)
            return None
        lost = lost_gpus(self._view, workspace)
        if lost:
            message = f"This host has no GPU {', '.join(lost)}, or it does not answer any more."
            self._blocked(workspace, main, message, waiting=False)
            return None
        networks = self.network_refs(workspace, main)
        if networks is None:
            return None
        after = self._awaited(workspace)
        for mount in workspace.spec.mounts:
            volume = self._volumes.get(mount.volume_id, Ready())
            if volume.problem:
                self._blocked(workspace, main, volume.problem, waiting=volume.waiting)
                return None
            after += volume.after
        return Parts(image=state.image, networks=networks, after=after)

    def network_refs(
        self, workspace: DesiredWorkspace, main: ObservedContainer | None
    ) -> tuple[Ref, ...] | None:
        refs = []
        for network_id in sorted(set(workspace.spec.network_ids)):
            missing = Ready(problem=f"Network {network_id} is not known on this host.")
            ready = self._networks.get(network_id, missing)
            if ready.ref is None:
                self._blocked(workspace, main, ready.problem, waiting=ready.waiting)
                return None
            refs.append(ready.ref)
        to_router = self._to_router(workspace)
        shared = self._view.desired.settings.router.network
        if to_router is not None and (problem := network_problem(shared)):
            self._blocked(workspace, main, problem, waiting=False)
            return None
        if to_router is not None and all(ref != to_router for ref in refs):
            refs.append(to_router)
        return tuple(refs)

    def _to_router(self, workspace: DesiredWorkspace) -> Ref | None:
        if uses_links(self._view):
            return self._links.get(workspace.id, Ready()).ref
        shared = router_network(self._view, workspace)
        return Ref(id=shared.id) if shared is not None else None

    def _awaited(self, workspace: DesiredWorkspace) -> tuple[int, ...]:
        ids = set(workspace.spec.network_ids)
        link = self._links.get(workspace.id, Ready())
        return link.after + tuple(
            node for id_ in sorted(ids) for node in self._networks[id_].after
        )

    def free_name(self, workspace: DesiredWorkspace, name: str) -> tuple[int, ...] | None:
        """Steps that free the name; None (and a finding) when somebody else keeps it."""
        holder = self._view.containers_by_name.get(name)
        if holder is None:
            return ()
        if self._view.owns_container(holder):
            nodes = self._removals.remove_now(holder)
            if nodes:
                return nodes
            message = f"Waiting for the name {name}: another workspace still has it."
            self.find(workspace, None, status="deployment_pending", message=message)
            self._plan.recheck(1.0)
            return None
        what = f"container {holder.name} ({holder.short_id})"
        message = held_by(self._view, name, what, holder.labels)
        self.find(workspace, None, status="error", message=message)
        return None

    def _blocked(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer | None,
        message: str,
        *,
        waiting: bool,
    ) -> None:
        status = "deployment_pending" if waiting else "error"
        self.find(workspace, main, status=status, message=message)

    def find(
        self,
        workspace: DesiredWorkspace,
        container: ObservedContainer | None,
        *,
        status: str,
        message: str,
    ) -> None:
        self._plan.findings.append(finding(workspace, container, status=status, message=message))
