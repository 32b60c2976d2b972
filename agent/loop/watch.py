"""What one cycle's execution tells: statuses, ledger rows, failures, and its record at the end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent import clock
from agent.apply.executor import Watcher
from agent.apply.ops import ledger_row
from agent.diff.never_started import is_stale_start
from agent.diff.status import finding, workspace_finding
from agent.diff.view import object_key
from agent.errors import AgentError, EngineError, EngineUnavailable, NotFound
from agent.plan import WorkspaceFinding
from agent.protocol.report import CycleReport, WorkspaceEvent
from agent.steps import NETWORK, PREREQUISITE, VOLUME, WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.apply.executor import Execution
    from agent.loop.parts import Parts
    from agent.plan import Plan
    from agent.protocol.state import DesiredWorkspace, HostState
    from agent.steps import Step

log = logging.getLogger(__name__)


class CycleWatcher(Watcher):
    """`state` is the document that `plan` was made from; the target may have moved on since."""

    def __init__(
        self,
        parts: Parts,
        state: HostState,
        plan: Plan,
        *,
        number: int,
        trigger: str,
        started_at: str,
        calls: int,
        newest: Callable[[], int],
    ) -> None:
        self._parts = parts
        self._state = state
        self._number = number
        self._trigger = trigger
        self._started_at = started_at
        self._calls = calls
        self._newest = newest
        self._workspaces = {object_key(WORKSPACE, w.id): w for w in state.workspaces}
        # Of workspaces that are not as they should be, whatever the plan's steps achieve.
        self._findings = {
            f.workspace_id: f for f in plan.findings if isinstance(f, WorkspaceFinding)
        }
        self._unfinished = plan.unfinished
        self._tombstones = {object_key(t.kind, t.object_id): t for t in state.tombstones}
        self._revisions = parts.target.revisions()

    # --- asked by the execution ---

    def may_clean(self) -> bool:
        return self._newest() == self._number

    def is_current(self, key: str) -> bool:
        return self._parts.target.revision(key) == self._revisions.get(key)

    def is_wanted(self, key: str) -> bool:
        return self._parts.target.revision(key) is not None

    # --- told by the execution ---

    def step_began(self, step: Step) -> None:
        workspace = self._workspaces.get(step.key)
        if workspace and step.begins:
            self._parts.reporter.turn(
                workspace.id, revision=workspace.revision, status=step.begins
            )

    def step_succeeded(self, step: Step, engine_id: str) -> None:
        # The engine may tell of it after the next look, which must not trust its memory then.
        self._parts.wake.note(engine_id)
        self._parts.reporter.step_succeeded(step, engine_id)
        row = ledger_row(step)
        if row is not None:
            workspace = self._workspaces.get(step.key)
            revision = workspace.revision if workspace else None
            self._parts.reporter.event(row, revision=revision, cycle=self._number)

    def object_ended(self, key: str, container_id: str, failure: AgentError | None) -> None:
        kind, _, object_id = key.partition(":")
        if failure is not None:
            self._failed(key, kind, object_id, failure)
            return
        self._parts.failures.clear(key)
        workspace = self._workspaces.get(key)
        if workspace:
            self._settled(workspace, container_id)

    def object_freed(self, key: str) -> None:
        if not self.is_current(key):
            self._parts.wake.request("state")

    def execution_ended(self, execution: Execution) -> None:
        failed = execution.failed
        succeeded = any(step.outcome == "ok" for step in execution.steps)
        outcome = "ok" if not failed else "partial" if succeeded else "failed"
        self._parts.reporter.cycle(
            CycleReport(
                seq=0,
                number=self._number,
                trigger=self._trigger,
                started_at=self._started_at,
                finished_at=clock.timestamp(),
                outcome=outcome,
                cleanup=execution.cleanup,
                engine_calls=self._parts.runtime.calls - self._calls,
                steps=tuple(execution.steps),
                message=execution.plan.message,
            )
        )
        self._parts.wake.request("changes")

    # --- ends ---

    def _settled(self, workspace: DesiredWorkspace, container_id: str) -> None:
        """The status comes from inspect, right after the last step."""
        enabled = self._state.settings.enabled
        container = None
        if container_id:
            try:
                container = self._parts.runtime.inspect_container(container_id)
            except NotFound:
                self._parts.wake.request("event")
                return
            except EngineError as problem:
                log.warning("status of %s unknown: %s", workspace.spec.name, problem)
                return
        found = self._findings.get(workspace.id)
        if found is not None:
            # What settled is the old container, as it was before.
            still = finding(workspace, container, status=found.status, message=found.message)
            self._parts.reporter.workspace(still)
            return
        if workspace.id not in self._unfinished:
            self._parts.journal.mark_applied(workspace.id, workspace.revision)
        self._parts.reporter.workspace(
            workspace_finding(workspace, container, now=clock.utc_now(), enabled=enabled)
        )

    def _failed(self, key: str, kind: str, object_id: str, failure: AgentError) -> None:
        away = isinstance(failure, EngineUnavailable)
        revision = self._revisions.get(key, 0)
        message = str(failure)
        workspace = self._workspaces.get(key)
        tombstone = self._tombstones.get(key)
        # An engine that does not answer, or that was interrupted, says nothing about a workspace.
        excused = workspace is not None and (away or is_stale_start(message))
        is_first = self._parts.failures.record(key, message, revision=revision, excused=excused)
        if away or excused:
            return
        if workspace:
            self._parts.reporter.turn(
                workspace.id, revision=workspace.revision, status="error", message=message
            )
            if is_first:
                self._tell_failure(workspace, message)
        elif tombstone:
            self._parts.reporter.tombstone_failed(tombstone.id, message)
        elif kind in {NETWORK, VOLUME, PREREQUISITE}:
            self._parts.reporter.resource_failed(kind, object_id, message)

    def _tell_failure(self, workspace: DesiredWorkspace, message: str) -> None:
        """The ledger's row of a change that did not work: once, not with each further try."""
        row = WorkspaceEvent(
            seq=0, workspace_id=workspace.id, event="error", cause=message, at=clock.timestamp()
        )
        self._parts.reporter.event(row, revision=workspace.revision, cycle=self._number)
