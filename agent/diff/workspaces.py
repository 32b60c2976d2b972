"""Workspaces: create, start, stop, heal, change in place or replace; one decision each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.diff.chains import Chain, Parts, replace_briefly, replace_without_downtime
from agent.diff.images import workspace_image
from agent.diff.in_place import in_place
from agent.diff.networks import Ready
from agent.diff.status import finding, is_crash_looping, workspace_finding
from agent.diff.stored import changes_since, read_stored
from agent.diff.view import View, object_key
from agent.protocol import naming
from agent.protocol.compare import replaces_without_downtime
from agent.steps import WORKSPACE, Ref

if TYPE_CHECKING:
    from agent.diff.cleanup import Removals
    from agent.observed import ObservedContainer
    from agent.plan import PlanBuilder
    from agent.protocol.report import FieldChange
    from agent.protocol.state import DesiredWorkspace

_STATES = frozenset({"running", "stopped"})
# Seconds after which a container that is being removed counts as stuck.
STUCK_AFTER = 5.0


class WorkspaceDiff:
    """One per plan; `networks` and `volumes` say what a new container can rely on."""

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

    def run(self) -> None:
        for workspace in sorted(self._view.desired.workspaces, key=lambda w: (w.spec.name, w.id)):
            if not self._view.is_busy(object_key(WORKSPACE, workspace.id)):
                self._diff(workspace)

    def _diff(self, workspace: DesiredWorkspace) -> None:
        main, spares = self._containers(workspace)
        if workspace.desired_state not in _STATES:
            message = f"State {workspace.desired_state} is not supported by this agent version."
            self._find(workspace, main, status="error", message=message)
            return
        held = self._view.knows.held.get(object_key(WORKSPACE, workspace.id))
        if held:
            self._find(workspace, main, status="error", message=held)
            return
        for container in (main, *spares):
            if container and container.id not in self._view.knows.owned_ids:
                self._plan.adopted.append((workspace.id, container.id))
        if main and main.state in {"removing", "dead"}:
            self._going(workspace, main)
            return
        if workspace.desired_state == "stopped" or not self._view.desired.settings.enabled:
            self._stopped(workspace, main, spares)
        elif main is None:
            self._absent(workspace, spares)
        else:
            self._present(workspace, main, spares)

    def _going(self, workspace: DesiredWorkspace, main: ObservedContainer) -> None:
        """On its way out: its end is an event, and only then is it clear what is left to do. One
        that stays like this is helped along."""
        if main.id not in self._view.knows.stuck_ids:
            self._plan.recheck(STUCK_AFTER)
        elif main.state == "dead":
            self._chain(workspace, "container is dead").remove(Ref(id=main.id))
        else:
            message = "The engine does not finish removing the old container."
            self._find(workspace, main, status="error", message=message)

    # --- desired stopped ----------------------------------------------------------------------

    def _stopped(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer | None,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        enabled = self._view.desired.settings.enabled
        cause = "stop requested" if enabled else "host is disabled"
        self._remove_spares(workspace, spares)
        if main and main.is_up:
            chain = self._chain(workspace, cause)
            chain.stop(main, begins="stopping", event="stop")
        elif not spares:
            self._plan.findings.append(
                workspace_finding(
                    workspace,
                    main if main is None or not main.error else None,
                    now=self._view.now,
                    enabled=enabled,
                )
            )

    # --- desired running ----------------------------------------------------------------------

    def _absent(self, workspace: DesiredWorkspace, spares: tuple[ObservedContainer, ...]) -> None:
        after = self._free_name(workspace, naming.container_name(workspace.spec.name))
        if after is None:
            return
        removed_by_hand = workspace.id in self._view.knows.containers
        ready = next((spare for spare in spares if self._is_current(workspace, spare)), None)
        if ready:
            self._finish_swap(workspace, ready, spares, after)
            return
        parts = self._parts(workspace, None)
        if parts is None:
            return
        after += self._remove_spares(workspace, spares)
        cause = "container was removed outside Trailer" if removed_by_hand else "no container yet"
        chain = self._chain(workspace, cause)
        new, joined = chain.create(
            parts,
            container_name=naming.container_name(workspace.spec.name),
            alias=workspace.spec.name,
            event="heal" if removed_by_hand else "create",
            after=after,
        )
        chain.start(new, after=joined, begins="starting")

    def _finish_swap(
        self,
        workspace: DesiredWorkspace,
        ready: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
        after: tuple[int, ...],
    ) -> None:
        """The old container is gone, its replacement waits under the spare name."""
        others = tuple(spare for spare in spares if spare is not ready)
        after += self._remove_spares(workspace, others)
        chain = self._chain(workspace, "finishing an interrupted replace")
        name = naming.container_name(workspace.spec.name)
        renamed = chain.rename(Ref(id=ready.id), name, after=after, event="replace")
        if not ready.is_up:
            chain.start(Ref(id=ready.id), after=(renamed,), begins="starting")

    def _present(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        changes = self._changes(workspace, main)
        if changes:
            self._replace(workspace, main, spares, changes)
            return
        ready = self._network_refs(workspace, main)
        if ready is None:
            return
        self._remove_spares(workspace, spares)
        before = len(self._plan.nodes)
        in_place(self._chain(workspace, ""), main, ready)
        if len(self._plan.nodes) == before and not spares:
            now = self._view.now
            self._plan.findings.append(workspace_finding(workspace, main, now=now))
            if is_crash_looping(main, now=now):
                self._plan.recheck(5.0)

    def _replace(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
        changes: tuple[FieldChange, ...],
    ) -> None:
        parts = self._parts(workspace, main)
        if parts is None:
            return
        if spares:
            self._resume(workspace, main, spares)
            return
        fields = [change.field for change in changes]
        cause = "changed: " + ", ".join(dict.fromkeys(fields))
        if fields == ["redeploy"]:
            cause = "redeploy requested"
        chain = self._chain(workspace, cause, changes)
        spare_is_free = (
            naming.next_container_name(workspace.spec.name) not in self._view.containers_by_name
        )
        serving = main.state == "running" and replaces_without_downtime(workspace.spec)
        if serving and spare_is_free:
            replace_without_downtime(chain, parts, main)
        else:
            replace_briefly(chain, parts, main)

    def _resume(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        """A replace was interrupted. If the new container serves and the old one does not, the old
        one goes; otherwise the left-over goes first and the next look starts again."""
        ready = next((s for s in spares if s.is_up and self._is_current(workspace, s)), None)
        if ready and not main.is_up:
            chain = self._chain(workspace, "finishing an interrupted replace")
            self._finish_swap(workspace, ready, spares, (chain.remove(Ref(id=main.id)),))
        else:
            self._remove_spares(workspace, spares)

    # --- what is there and what is needed --------------------------------------------------------

    def _containers(
        self, workspace: DesiredWorkspace
    ) -> tuple[ObservedContainer | None, tuple[ObservedContainer, ...]]:
        """The workspace's container (by name, else the one the journal knows) and the others."""
        owned = self._view.owned_containers.get(workspace.id, ())
        name = naming.container_name(workspace.spec.name)
        known = self._view.knows.containers.get(workspace.id, "")
        main = next((c for c in owned if c.name == name), None)
        plain = [c for c in owned if not c.name.endswith("-next")]
        main = main or next((c for c in plain if c.id == known), None)
        main = main or next(iter(plain), None)
        return main, tuple(c for c in owned if c is not main)

    def _is_current(self, workspace: DesiredWorkspace, container: ObservedContainer) -> bool:
        stored = read_stored(container.labels)
        return (
            stored is not None
            and container.state in {"created", "running"}
            and container.health in {"", "healthy"}
            and not self._changes(workspace, container)
        )

    def _changes(
        self, workspace: DesiredWorkspace, container: ObservedContainer
    ) -> tuple[FieldChange, ...]:
        stored = read_stored(container.labels)
        wanted = workspace.spec
        if stored is not None:
            image_id = self._image_id(workspace, stored.spec.image_engine_id)
            wanted = msgspec.structs.replace(wanted, image_engine_id=image_id)
        return changes_since(
            stored,
            wanted,
            revision=workspace.revision,
            host_key=self._view.knows.host_key,
            router_mode=self._view.desired.settings.router.mode,
        )

    def _image_id(self, workspace: DesiredWorkspace, current: str) -> str:
        """The engine id to compare with; one the engine does not have cannot be asked for."""
        wanted = workspace.spec.image_engine_id
        if not wanted or wanted == current or wanted in self._view.images_by_ref:
            return wanted
        here = self._view.image_at(workspace.spec.image_ref)
        return here.id if here else current

    def _parts(self, workspace: DesiredWorkspace, main: ObservedContainer | None) -> Parts | None:
        """None (and a finding that says why) unless a new container could be made now."""
        state = workspace_image(self._view, workspace.spec)
        if state.image is None:
            self._blocked(workspace, main, state.problem, waiting=state.waiting)
            return None
        if workspace.spec.nested_virtualization and not self._view.knows.has_kvm:
            message = "Nested virtualisation needs /dev/kvm, which this host does not have."
            self._blocked(workspace, main, message, waiting=False)
            return None
        networks = self._network_refs(workspace, main)
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

    def _network_refs(
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

    def _free_name(self, workspace: DesiredWorkspace, name: str) -> tuple[int, ...] | None:
        """Steps that free the name; None (and a finding) when somebody else keeps it."""
        holder = self._view.containers_by_name.get(name)
        if holder is None:
            return ()
        if self._view.owns_container(holder):
            nodes = self._removals.remove_now(holder)
            if nodes:
                return nodes
            message = f"Waiting for the name {name}: another workspace still has it."
            self._find(workspace, None, status="deployment_pending", message=message)
            self._plan.recheck(1.0)
            return None
        message = (
            f"The name {name} is held by container {holder.name} ({holder.short_id}), "
            "which Trailer did not make; rename or remove it."
        )
        self._find(workspace, None, status="error", message=message)
        return None

    # --- small words -----------------------------------------------------------------------------

    def _chain(
        self, workspace: DesiredWorkspace, cause: str, changes: tuple[FieldChange, ...] = ()
    ) -> Chain:
        return Chain(
            view=self._view, plan=self._plan, workspace=workspace, cause=cause, changes=changes
        )

    def _remove_spares(
        self, workspace: DesiredWorkspace, spares: tuple[ObservedContainer, ...]
    ) -> tuple[int, ...]:
        chain = self._chain(workspace, "left over from an interrupted replace")
        return tuple(chain.remove(Ref(id=spare.id), after=chain.stop(spare)) for spare in spares)

    def _blocked(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer | None,
        message: str,
        *,
        waiting: bool,
    ) -> None:
        status = "deployment_pending" if waiting else "error"
        self._find(workspace, main, status=status, message=message)

    def _find(
        self,
        workspace: DesiredWorkspace,
        container: ObservedContainer | None,
        *,
        status: str,
        message: str,
    ) -> None:
        self._plan.findings.append(finding(workspace, container, status=status, message=message))
