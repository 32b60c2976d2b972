"""Workspaces: create, start, stop, heal, change in place or replace; one decision each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.diff.chains import Chain, Parts, attempt_of
from agent.diff.container import network_alias
from agent.diff.current import changes_of, containers_of, is_made_for, was_edited
from agent.diff.in_place import in_place, limits_to_lift, run_state
from agent.diff.names import rename
from agent.diff.never_started import can_never_start
from agent.diff.replaces import replace_briefly, replace_without_downtime, take_over
from agent.diff.snapshots import interrupted_commits
from agent.diff.status import (
    blocked_finding,
    is_crash_looping,
    lost_gpus,
    without_gpus,
    workspace_finding,
)
from agent.diff.view import View, object_key
from agent.protocol import naming
from agent.protocol.compare import replaces_without_downtime
from agent.steps import WORKSPACE, Ref

if TYPE_CHECKING:
    from agent.diff.readiness import Readiness
    from agent.observed import ObservedContainer
    from agent.plan import PlanBuilder
    from agent.protocol.report import FieldChange
    from agent.protocol.state import DesiredWorkspace

_STATES = frozenset({"running", "stopped"})
# Seconds after which a container that is being removed counts as stuck.
STUCK_AFTER = 5.0


class WorkspaceDiff:
    """One per plan."""

    def __init__(self, view: View, plan: PlanBuilder, ready: Readiness) -> None:
        self._view = view
        self._plan = plan
        self._ready = ready

    def run(self) -> None:
        being_committed = interrupted_commits(self._view)
        for workspace in sorted(self._view.desired.workspaces, key=lambda w: (w.spec.name, w.id)):
            busy = self._view.is_busy(object_key(WORKSPACE, workspace.id))
            if not busy and workspace.id not in being_committed:
                self._diff(workspace)

    def _diff(self, workspace: DesiredWorkspace) -> None:
        main, spares = containers_of(self._view, workspace)
        if workspace.desired_state not in _STATES:
            message = f"State {workspace.desired_state} is not supported by this agent version."
            self._ready.find(workspace, main, status="error", message=message)
            return
        enabled = self._view.desired.settings.enabled
        key, knows = object_key(WORKSPACE, workspace.id), self._view.knows
        # What the host's policy refuses is left as it is, unless it is to stop.
        refused = workspace.desired_state == "running" and knows.refused.get(key)
        problem = refused or knows.held.get(key)
        if problem == "" and enabled:
            # It waits, and its status stays: the engine broke off once, which is no error of it.
            return
        if problem and enabled:
            self._ready.find(workspace, main, status="error", message=problem)
            return
        for container in (main, *spares):
            if container and container.id not in self._view.knows.owned_ids:
                self._plan.adopted.append((workspace.id, container.id))
        if main and main.state in {"removing", "dead"}:
            self._going(workspace, main)
            return
        if workspace.blocked and enabled and workspace.desired_state == "running":
            self._blocked(workspace, main, spares)
            return
        if workspace.desired_state == "stopped" or not enabled:
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
            self._ready.find(workspace, main, status="error", message=message)

    def _blocked(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer | None,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        """What runs goes on as it is, with the sentence beside it; what is down stays down, and
        what a replace had prepared goes."""
        up = next((one for one in (main, *spares) if one and one.is_up), None)
        cleared = self._remove_spares(workspace, tuple(one for one in spares if one is not up))
        if cleared:
            return
        now = self._view.now
        self._plan.findings.append(blocked_finding(workspace, up or main, now=now))
        if up is not None and is_crash_looping(up, now=now):
            self._plan.recheck(5.0)

    # --- desired stopped ----------------------------------------------------------------------

    def _stopped(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer | None,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        enabled = self._view.desired.settings.enabled
        cause, event = "stop requested" if enabled else "host is disabled", "stop"
        self._remove_spares(workspace, spares)
        if main and main.is_up:
            if enabled and not was_edited(self._view, workspace, main):
                cause, event = "started outside Trailer", "heal"
            chain = self._chain(workspace, cause)
            stopped = chain.stop(main, begins="stopping", event=event)
            if enabled:
                # Not in a later plan: what this revision asks for counts as done after this one.
                rename(self._chain(workspace, ""), main, after=stopped)
        elif main and enabled and rename(self._chain(workspace, ""), main):
            # At once and not only with its next start: another workspace may want its old name.
            return
        elif not spares:
            self._note_in_place(workspace, main)
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
        after = self._ready.free_name(workspace, naming.container_name(workspace.spec.name))
        if after is None:
            return
        removed_by_hand = workspace.id in self._view.knows.containers
        ready = next((spare for spare in spares if self._is_left_over(workspace, spare)), None)
        if ready:
            self._finish_swap(workspace, ready, spares, after)
            return
        parts = self._ready.parts(workspace, None)
        if parts is None:
            return
        after += self._remove_spares(workspace, spares)
        cause = "container was removed outside Trailer" if removed_by_hand else "no container yet"
        chain = self._chain(workspace, cause)
        new, joined = chain.create(
            parts,
            container_name=naming.container_name(workspace.spec.name),
            alias=network_alias(workspace),
            event="heal" if removed_by_hand else "create",
            after=after,
        )
        chain.start(new, after=joined, begins="starting")

    def _is_left_over(self, workspace: DesiredWorkspace, spare: ObservedContainer) -> bool:
        """Whether only its name is missing. That it is healthy by now is not asked: there is
        nothing else, and another one would be the same."""
        going = spare.state in {"removing", "dead"}
        unable = going or can_never_start(spare)
        return not unable and is_made_for(self._view, workspace, spare)

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
        self._plan.unfinished.add(workspace.id)
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
        changes = changes_of(self._view, workspace, main)
        cause = _cause_of(changes)
        if not changes:
            changes = limits_to_lift(workspace, main)
            cause = "limits were changed outside Trailer"
        failed = self._failed_before(workspace, main, changes)
        if failed:
            self._stay(workspace, main, spares, failed)
            return
        if changes:
            self._replace(workspace, main, spares, self._chain(workspace, cause, changes))
            return
        if can_never_start(main):
            self._make_again(workspace, main, spares)
            return
        networks = self._ready.network_refs(workspace, main)
        if networks is None:
            self._keep(workspace, main, spares)
            return
        cleared = self._remove_spares(workspace, spares)
        before = len(self._plan.nodes)
        in_place(self._chain(workspace, ""), main, networks, after=cleared)
        if len(self._plan.nodes) == before and not spares:
            self._note_in_place(workspace, main)
            now = self._view.now
            found = workspace_finding(workspace, main, now=now)
            found = without_gpus(found, lost_gpus(self._view, workspace))
            self._plan.findings.append(found)
            if is_crash_looping(main, now=now):
                self._plan.recheck(5.0)

    def _make_again(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        """remove → create → start: it never ran, so there is nothing to keep beside it."""
        parts = self._ready.parts(workspace, main)
        if parts is None:
            return
        chain = self._chain(workspace, "the engine was interrupted while it started the container")
        cleared = self._remove_spares(workspace, spares)
        removed = chain.remove(Ref(id=main.id), after=cleared)
        new, joined = chain.create(
            parts,
            container_name=chain.final_name,
            alias=chain.alias,
            event="heal",
            after=(removed,),
        )
        chain.start(new, after=joined, begins="starting")

    def _failed_before(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        changes: tuple[FieldChange, ...],
    ) -> str:
        """Why the very same replace failed; empty when it may be tried. Every further try would
        be an outage, unless the old container cannot run either."""
        failed = self._view.knows.failed_replaces.get(workspace.id)
        if not changes or failed is None or failed.attempt != attempt_of(workspace, changes):
            return ""
        return failed.message if main.is_up or not main.error else ""

    def _stay(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
        failed: str,
    ) -> None:
        """The old container stays as it was made, and is looked after like any other."""
        networks = self._ready.network_refs(workspace, main)
        if networks is None:
            self._go_back(workspace, main, spares)
            return
        cleared = self._remove_spares(workspace, spares)
        in_place(self._chain(workspace, ""), main, networks, after=cleared, limits=False)
        self._ready.find(workspace, main, status="error", message=failed)

    def _keep(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        """No new container can be made now. An old one that stands still only because a replace
        was interrupted does not wait for that."""
        if main.is_up or main.id in self._view.knows.stopped_to_replace:
            self._go_back(workspace, main, spares)

    def _go_back(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> None:
        """What a replace has begun goes, and the old container runs again, under its name."""
        cleared = self._remove_spares(workspace, spares)
        chain = self._chain(workspace, "")
        run_state(chain, main, after=(*cleared, *rename(chain, main)))

    def _replace(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
        chain: Chain,
    ) -> None:
        begun = self._begun(workspace, main, spares)
        if begun:
            self._plan.unfinished.add(workspace.id)
            chain = replace(chain, cause="finishing an interrupted replace")
            take_over(chain, Ref(id=begun.id), main, is_started=True)
            return
        parts = self._ready.parts(workspace, main)
        if parts is None:
            self._keep(workspace, main, spares)
            return
        beside = main.state == "running" and replaces_without_downtime(
            workspace.spec,
            writes_before=main.writable_targets,
            shared_volumes=workspace.shared_volumes,
        )
        ready = self._ready_to_start(workspace, spares, parts)
        if ready and not beside:
            self._plan.unfinished.add(workspace.id)
            chain = replace(chain, cause="finishing an interrupted replace")
            take_over(chain, Ref(id=ready.id), main)
            return
        # One that is made for something else by now, or that runs beside the old one although it
        # must not: it goes first.
        cleared = self._remove_spares(workspace, spares)
        if beside:
            replace_without_downtime(chain, parts, main, after=cleared)
        else:
            replace_briefly(chain, parts, main, after=cleared)

    def _begun(
        self,
        workspace: DesiredWorkspace,
        main: ObservedContainer,
        spares: tuple[ObservedContainer, ...],
    ) -> ObservedContainer | None:
        """The new container of an interrupted replace, if it runs and the old one does not: it
        needs nothing further, whatever has become of its image or networks."""
        if main.is_up or len(spares) != 1 or not spares[0].is_up:
            return None
        return spares[0] if is_made_for(self._view, workspace, spares[0]) else None

    def _ready_to_start(
        self, workspace: DesiredWorkspace, spares: tuple[ObservedContainer, ...], parts: Parts
    ) -> ObservedContainer | None:
        """The new container of an interrupted replace, if it is complete and does not run."""
        if len(spares) != 1 or not _stands_ready(workspace, spares[0], parts):
            return None
        return spares[0] if is_made_for(self._view, workspace, spares[0]) else None

    def _note_in_place(self, workspace: DesiredWorkspace, main: ObservedContainer | None) -> None:
        """From here on a difference is somebody else's doing."""
        enabled = self._view.desired.settings.enabled
        if main and enabled and workspace.id not in self._plan.unfinished:
            self._plan.in_place.append((workspace.id, workspace.revision))

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


def _cause_of(changes: tuple[FieldChange, ...]) -> str:
    fields = [change.field for change in changes]
    if fields == ["redeploy"]:
        return "redeploy requested"
    return "changed: " + ", ".join(dict.fromkeys(fields))


def _stands_ready(workspace: DesiredWorkspace, spare: ObservedContainer, parts: Parts) -> bool:
    """Complete, and not running: on all its networks under its alias."""
    if spare.state not in {"created", "exited"} or parts.after or can_never_start(spare):
        return False
    name = network_alias(workspace)
    joined = {place.network_id for place in spare.attachments if name in place.aliases}
    return all(ref.id in joined for ref in parts.networks)
