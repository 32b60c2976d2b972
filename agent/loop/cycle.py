"""The cycle loop: look, plan, hand over to the executor; it never waits for slow work.

Invariants: what is in flight is asked for *before* the look, so an object that ends in between is
left to the next cycle; only the newest cycle cleans; an engine error is never an empty host.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.diff.addresses import taken_addresses
from agent.diff.images import asked_to_end
from agent.diff.view import Knowledge, View
from agent.diff.workspaces import STUCK_AFTER
from agent.errors import AgentError, EngineError
from agent.loop.watch import CycleWatcher
from agent.planner import make_plan
from agent.protocol import naming
from agent.protocol.report import CycleReport
from agent.runtime.port import Look
from agent.steps import PREREQUISITE, WORKSPACE

if TYPE_CHECKING:
    from agent.apply.executor import Execution
    from agent.loop.parts import Parts
    from agent.loop.wake import Reasons
    from agent.observed import ObservedState
    from agent.plan import Plan
    from agent.protocol.state import HostState

log = logging.getLogger(__name__)

FULL_LOOK = 60.0
_RETRY_LOOK = 2.0


class CycleLoop:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # Numbers are given to cycles and to work beside them, which has a thread of its own.
        self._numbers = threading.Lock()
        self._given = parts.journal.cycle_number()
        self._number = self._given
        self._last_full = 0.0
        self._recheck_at: float | None = None
        self._retry_look_at: float | None = None
        self._must_be_full = True
        self._outage_told = False
        self._going_since: dict[str, float] = {}
        self.trouble = ""

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            reasons = self._parts.wake.wait(self._next_due())
            if stop.is_set():
                return
            try:
                self.cycle(reasons)
            except Exception:
                # A failed cycle never stops the loop; the next look starts from the truth again.
                log.exception("cycle failed unexpectedly")
                self._look_again_later()

    # --- when ---

    def _next_due(self) -> float:
        now = clock.monotonic()
        due = [self._last_full + FULL_LOOK - now]
        due += [at - now for at in (self._recheck_at, self._retry_look_at) if at is not None]
        waiting = self._parts.failures.next_due()
        if waiting is not None:
            due.append(waiting)
        if not self._parts.executor.is_idle():
            due.append(self._parts.target.settings().reconcile_interval)
        return max(0.01, min(due))

    def take_number(self) -> int:
        """For work beside the cycles that is told like one."""
        with self._numbers:
            self._given += 1
            self._parts.journal.save_cycle_number(self._given)
            return self._given

    # --- one cycle ---

    def cycle(self, reasons: Reasons) -> Execution | None:
        parts = self._parts
        state = parts.target.state()
        if state is None:
            self._last_full = clock.monotonic()
            return None
        # From here on an older cycle leaves its cleanup to this one.
        with self._numbers:
            self._given += 1
            self._number = self._given
        started_at, calls = clock.timestamp(), parts.runtime.calls
        full = reasons.full or self._must_be_full
        full = full or clock.monotonic() - self._last_full >= FULL_LOOK
        trigger = ",".join(reasons.names) or ("full" if full else "due")
        knows = self._knowledge(state)
        parts.ends.before_look()
        # Before the look: an engine that is busy with a build answers late.
        parts.works.cut_short(asked_to_end(state, knows.running_builds))
        try:
            observed = parts.runtime.observe(self._look(state, knows, reasons, full=full))
        except EngineError as problem:
            self._could_not_look(problem, trigger=trigger, started_at=started_at)
            return None
        self._looked(full=full)
        now = clock.utc_now()
        plan = make_plan(state, observed, knows, now=now)
        self._remember(state, observed, knows, plan)
        parts.addresses.saw(
            taken_addresses(View(desired=state, observed=observed, knows=knows, now=now))
        )
        if gone := knows.pulled.keys() - {image.id for image in observed.images}:
            parts.journal.pulls_gone(gone)
        if gone := knows.failed_replaces.keys() - {workspace.id for workspace in state.workspaces}:
            parts.journal.forget_failed_replaces(gone)
        adopted = frozenset(container_id for _, container_id in plan.adopted)
        parts.subjects.saw(observed.containers, knows.owned_ids | adopted)
        parts.ends.after_look(observed.containers, knows.owned_ids | adopted)
        for finding in plan.findings:
            parts.reporter.found(finding)
        self._resend_results(state, knows)
        if plan.recheck_after is not None:
            self._recheck_at = clock.monotonic() + plan.recheck_after
        if not plan.nodes:
            self._tell_held(plan, trigger=trigger, started_at=started_at)
            return None
        return self._execute(plan, state, trigger=trigger, started_at=started_at, calls=calls)

    def _knowledge(self, state: HostState) -> Knowledge:
        parts = self._parts
        journal, addresses = parts.journal.view(), parts.addresses.look()
        return Knowledge(
            host_id=parts.identity.host_id,
            host_key=parts.identity.host_key,
            owned_ids=journal.owned_ids,
            containers=journal.containers,
            applied=journal.applied,
            stopped_ids=journal.stopped_ids,
            stopped_to_replace=journal.stopped_to_replace,
            failed_replaces=journal.failed_replaces,
            stuck_ids=self._stuck(),
            builds=journal.builds,
            made_images=journal.made_images,
            pulled=journal.pulled,
            loose_steps=journal.loose_steps,
            routes=journal.routes,
            running_builds=parts.works.running_builds(),
            cancelling=parts.works.cancelling(),
            busy=parts.executor.busy_keys() | parts.works.busy_keys(),
            held=parts.failures.held(parts.target.revisions()),
            hold_removals=parts.target.hold_removals(state),
            brake_released=parts.target.brake_is_released(state),
            latched=parts.target.latched(),
            has_kvm=parts.has_kvm,
            gpus=parts.gpus.present(),
            disk_low=parts.disk.message(),
            refused=parts.policy.refusals(state, resolve=os.path.realpath),
            host_ranges=addresses.ranges,
            ranges_unseen=addresses.unseen,
        )

    def _stuck(self) -> frozenset[str]:
        now = clock.monotonic()
        return frozenset(i for i, at in self._going_since.items() if now - at >= STUCK_AFTER)

    def _look(self, state: HostState, knows: Knowledge, reasons: Reasons, *, full: bool) -> Look:
        names = {naming.container_name(workspace.spec.name) for workspace in state.workspaces}
        names |= {naming.prerequisite_name(item.kind) for item in state.prerequisites}
        return Look(
            container_names=frozenset(names),
            container_ids=knows.owned_ids,
            host_id=knows.host_id,
            changed_ids=reasons.changed_ids,
            full=full,
        )

    def _looked(self, *, full: bool) -> None:
        now = clock.monotonic()
        self._parts.health.looked()
        if full:
            self._last_full = now
            self._must_be_full = False
        self._retry_look_at = None
        self._recheck_at = None
        self._outage_told = False
        self.trouble = ""

    def _remember(
        self, state: HostState, observed: ObservedState, knows: Knowledge, plan: Plan
    ) -> None:
        parts = self._parts
        for workspace_id, container_id in plan.adopted:
            log.info("adopted container %s of workspace %s", container_id[:12], workspace_id)
            parts.journal.own(container_id, kind=WORKSPACE, object_id=workspace_id)
        for workspace_id, revision in plan.in_place:
            if knows.applied.get(workspace_id) != revision:
                parts.journal.mark_applied(workspace_id, revision)
        parts.journal.forget_absent(
            WORKSPACE,
            frozenset(container.id for container in observed.containers),
            wanted=frozenset(workspace.id for workspace in state.workspaces),
            known=knows.owned_ids,
        )
        parts.journal.forget_absent(
            PREREQUISITE,
            frozenset(c.id for c in observed.containers) | {n.id for n in observed.networks},
            wanted=frozenset(),
            known=knows.owned_ids,
        )
        going = {c.id for c in observed.containers if c.state in {"removing", "dead"}}
        now = clock.monotonic()
        self._going_since = {i: self._going_since.get(i, now) for i in going}
        parts.target.latch(plan.held_workspaces)
        if plan.cleanup != "held":
            parts.target.settled(state)

    def _resend_results(self, state: HostState, knows: Knowledge) -> None:
        """Builds the server still waits for although they ended here: a report got lost."""
        for image in state.images:
            record = knows.builds.get(image.build.id) if image.build else None
            if image.build and not image.build.done and record and record.status != "started":
                self._parts.works.resend(image.build.id)

    def _execute(
        self, plan: Plan, state: HostState, *, trigger: str, started_at: str, calls: int
    ) -> Execution:
        with self._numbers:
            self._parts.journal.save_cycle_number(self._given)
        log.info("cycle %d (%s):\n%s", self._number, trigger, plan.render())
        number = self._number
        watcher = CycleWatcher(
            self._parts,
            state,
            plan,
            number=number,
            trigger=trigger,
            started_at=started_at,
            calls=calls,
            newest=lambda: self._number,
        )
        return self._parts.executor.submit(plan, watcher)

    # --- what goes wrong ---

    def _could_not_look(self, problem: EngineError, *, trigger: str, started_at: str) -> None:
        self.trouble = str(problem)
        self._look_again_later()
        if not self._outage_told:
            self._outage_told = True
            self.tell_failure(problem, trigger=trigger, started_at=started_at)

    def _look_again_later(self) -> None:
        """Soon but never in a hot loop, and without trust in anything remembered."""
        now = clock.monotonic()
        self._last_full = now
        self._recheck_at = None
        self._retry_look_at = now + _RETRY_LOOK
        self._must_be_full = True

    def tell_failure(self, problem: AgentError, *, trigger: str, started_at: str) -> None:
        log.error("cycle failed: %s", problem)
        self._report(
            trigger=trigger, started_at=started_at, outcome="failed", message=str(problem)
        )

    def _tell_held(self, plan: Plan, *, trigger: str, started_at: str) -> None:
        if plan.message == self._parts.held_message:
            return
        self._parts.held_message = plan.message
        if not plan.message:
            return
        self._report(
            trigger=trigger,
            started_at=started_at,
            outcome="ok",
            cleanup=plan.cleanup,
            message=plan.message,
        )

    def _report(
        self,
        *,
        trigger: str,
        started_at: str,
        outcome: str,
        message: str,
        cleanup: str = "skipped",
    ) -> None:
        self._parts.reporter.cycle(
            CycleReport(
                seq=0,
                number=self._number,
                trigger=trigger,
                started_at=started_at,
                finished_at=clock.timestamp(),
                outcome=outcome,
                cleanup=cleanup,
                engine_calls=0,
                message=message,
            )
        )
