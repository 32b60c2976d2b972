"""Whether a container of a workspace could be made now; if not, the finding that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.chains import Parts
from agent.diff.images import workspace_image
from agent.diff.networks import Ready
from agent.diff.status import finding

if TYPE_CHECKING:
    from agent.diff.cleanup import Removals
    from agent.diff.view import View
    from agent.observed import ObservedContainer
    from agent.plan import PlanBuilder
    from agent.protocol.state import DesiredWorkspace
    from agent.steps import Ref


class Readiness:
    """`networks` and `volumes` say what a new container can rely on."""

    def __init__(
        self,
        view: View,
        plan: PlanBuilder,
        *,
        networks: dict[str, Ready],
        volumes: dict[str, Ready],
        removals: Removals,
    ) -> None:
        self._view = view
        self._plan = plan
        self._networks = networks
        self._volumes = volumes
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
        return tuple(refs)

    def _awaited(self, workspace: DesiredWorkspace) -> tuple[int, ...]:
        ids = set(workspace.spec.network_ids)
        return tuple(node for id_ in sorted(ids) for node in self._networks[id_].after)

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
        message = (
            f"The name {name} is held by container {holder.name} ({holder.short_id}), "
            "which Trailer did not make; rename or remove it."
        )
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
