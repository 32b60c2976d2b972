"""The walk over a plan: what is ready runs, a failed step skips only what depends on it.

It decides nothing. One pool serves short engine calls, a second one those that mostly wait.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent import clock
from agent.apply.ops import Obsolete
from agent.errors import AgentError, EngineError
from agent.protocol.report import StepReport
from agent.steps import StopContainer, WaitHealthy

if TYPE_CHECKING:
    from agent.apply.ops import Ops
    from agent.plan import Node, Plan
    from agent.steps import Ref, Step

log = logging.getLogger(__name__)

ENGINE_WORKERS = 8
WAITING_WORKERS = 32
# `obsolete`: given up because something newer is wanted. The next plan starts from what is there,
# so nothing is rescued.
_FINAL = frozenset({"ok", "failed", "obsolete", "skipped"})
_NOT_REACHED = _FINAL - {"ok"}


class Watcher:
    """Told of every turn of an execution; the default hears and does nothing."""

    def step_began(self, step: Step) -> None: ...

    def step_succeeded(self, step: Step, engine_id: str) -> None: ...

    def object_ended(self, key: str, container_id: str, failure: AgentError | None) -> None: ...

    def object_freed(self, key: str) -> None: ...

    def execution_ended(self, execution: Execution) -> None: ...

    def may_clean(self) -> bool:
        return True

    def is_current(self, key: str) -> bool:
        return True

    def is_wanted(self, key: str) -> bool:
        return False


class Executor:
    def __init__(self, ops: Ops, *, workers: int = ENGINE_WORKERS) -> None:
        self._ops = ops
        self._engine_pool = ThreadPoolExecutor(workers, thread_name_prefix="engine")
        # With one worker there is one pool: steps then run strictly one after another.
        self._waiting_pool = (
            ThreadPoolExecutor(WAITING_WORKERS, thread_name_prefix="waiting")
            if workers > 1
            else self._engine_pool
        )
        self._lock = threading.Lock()
        self._active: list[Execution] = []
        self.stopping = threading.Event()

    def submit(self, plan: Plan, watcher: Watcher) -> Execution:
        execution = Execution(plan, self, watcher)
        with self._lock:
            self._active.append(execution)
        execution.advance()
        return execution

    def busy_keys(self) -> frozenset[str]:
        """Objects that an execution still works on. Cleanup that has not begun claims nothing: a
        newer cycle takes it over."""
        with self._lock:
            active = list(self._active)
        return frozenset(key for execution in active for key in execution.open_keys())

    def is_idle(self) -> bool:
        with self._lock:
            return not self._active

    def finished(self, execution: Execution) -> None:
        with self._lock:
            self._active.remove(execution)

    def run(self, execution: Execution, node: Node) -> None:
        waits = isinstance(node.step, StopContainer | WaitHealthy)
        pool = self._waiting_pool if waits else self._engine_pool
        pool.submit(execution.perform, node, self._ops)

    def shutdown(self) -> None:
        self.stopping.set()
        self._engine_pool.shutdown(wait=False, cancel_futures=True)
        self._waiting_pool.shutdown(wait=False, cancel_futures=True)


class Execution:
    """One plan on its way. All state sits behind one lock; callbacks are made outside of it."""

    def __init__(self, plan: Plan, executor: Executor, watcher: Watcher) -> None:
        self.plan = plan
        self.steps: list[StepReport] = []
        self.cleanup = plan.cleanup
        self.done = threading.Event()
        self._executor = executor
        self._watcher = watcher
        self._lock = threading.RLock()
        self._outcomes: dict[int, str] = {node.number: "pending" for node in plan.nodes}
        self._results: dict[int, str] = {}
        self._containers: dict[str, str] = {}
        self._failures: dict[str, AgentError] = {}
        self._open: dict[str, int] = {}
        for node in plan.nodes:
            self._open[node.step.key] = self._open.get(node.step.key, 0) + 1
        self._by_number = {node.number: node for node in plan.nodes}
        self._ended = False

    def open_keys(self) -> frozenset[str]:
        with self._lock:
            waiting = {
                node.step.key
                for node in self.plan.nodes
                if node.cleanup and self._outcomes[node.number] == "pending"
            }
            at_work = {
                key
                for node in self.plan.nodes
                for key in node.step.claims
                if self._outcomes[node.number] not in _FINAL
                and not (node.cleanup and self._outcomes[node.number] == "pending")
            }
            ending = {key for key, count in self._open.items() if count} - waiting
            return frozenset(at_work | ending)

    @property
    def failed(self) -> int:
        with self._lock:
            return sum(outcome in {"failed", "obsolete"} for outcome in self._outcomes.values())

    def advance(self) -> None:
        """Start whatever became ready; skip what cannot happen any more; notice the end."""
        while True:
            with self._lock:
                ready, skipped = self._next()
                for node in ready:
                    self._outcomes[node.number] = "running"
                for node in skipped:
                    self._outcomes[node.number] = "skipped"
                    self._explain_skip(node)
            for node in ready:
                self._executor.run(self, node)
            for node in skipped:
                self._close(node)
            if not skipped:
                break
        with self._lock:
            over = all(outcome in _FINAL for outcome in self._outcomes.values())
            if not over or self._ended:
                return
            self._ended = True
        self._executor.finished(self)
        self._watcher.execution_ended(self)
        self.done.set()

    def _next(self) -> tuple[list[Node], list[Node]]:
        ready, skipped = [], []
        work_left = any(
            self._outcomes[node.number] not in _FINAL
            for node in self.plan.nodes
            if not node.cleanup
        )
        for node in self.plan.nodes:
            if self._outcomes[node.number] != "pending":
                continue
            verdict = self._verdict(node, work_left=work_left)
            if verdict == "run":
                ready.append(node)
            elif verdict == "skip":
                skipped.append(node)
        return ready, skipped

    def _verdict(self, node: Node, *, work_left: bool) -> str:
        if self._executor.stopping.is_set():
            return "skip"
        if node.rescues:
            before = [self._outcomes[number] for number in node.rescues]
            if any(outcome not in _FINAL for outcome in before):
                return "wait"
            if "failed" not in before:
                return "skip"
        before = [self._outcomes[number] for number in node.after]
        if any(outcome in _NOT_REACHED for outcome in before):
            return "skip"
        if any(outcome != "ok" for outcome in before):
            return "wait"
        if not node.cleanup:
            return "run"
        if work_left:
            return "wait"
        if not self._watcher.may_clean():
            self.cleanup = "deferred"
            return "skip"
        return "skip" if self._watcher.is_wanted(node.step.key) else "run"

    def perform(self, node: Node, ops: Ops) -> None:
        """Runs in a worker thread."""
        step, key = node.step, node.step.key
        started_at, began = clock.timestamp(), clock.monotonic()
        outcome, message, engine_id = "ok", "", ""
        try:
            self._watcher.step_began(step)
            if node.rescues and not self._can_resolve(node):
                log.debug("nothing to undo for %s", key)
            else:
                engine_id = ops.perform(
                    step,
                    self._resolve,
                    lambda: self._is_current(key),
                    lambda engine_id: self._watcher.step_succeeded(step, engine_id),
                )
        except AgentError as problem:
            is_obsolete = isinstance(problem, Obsolete)
            outcome, message = "obsolete" if is_obsolete else "failed", str(problem)
            with self._lock:
                self._failures.setdefault(key, problem)
        except Exception as problem:
            # A bug in one step must not take the cycle, or the other objects, down with it.
            log.exception("step failed unexpectedly: %s", node.render())
            outcome, message = "failed", f"Internal error: {problem}"
            with self._lock:
                self._failures.setdefault(key, AgentError(message))
        elapsed = clock.monotonic() - began
        log_level = logging.INFO if outcome == "ok" else logging.WARNING
        log.log(log_level, "%s -> %s %.0f ms %s", node.render(), outcome, elapsed * 1000, message)
        report = StepReport(
            step=step.verb,
            resource=key,
            name=step.name,
            cause=step.cause,
            outcome="failed" if outcome == "obsolete" else outcome,
            started_at=started_at,
            duration_ms=round(elapsed * 1000),
            message=message,
        )
        with self._lock:
            self.steps.append(report)
            self._outcomes[node.number] = outcome
            self._results[node.number] = engine_id
            self._track(step, engine_id, outcome)
        self._close(node)
        self.advance()

    def _is_current(self, key: str) -> bool:
        """Asked by a step that waits. An agent that stops waits for nothing."""
        return self._watcher.is_current(key) and not self._executor.stopping.is_set()

    def _track(self, step: Step, engine_id: str, outcome: str) -> None:
        """Remember the container that stands for the object at the end."""
        if outcome != "ok" or not engine_id:
            return
        if step.verb == "remove_container":
            if self._containers.get(step.key) == engine_id:
                del self._containers[step.key]
        elif step.key.startswith("workspace:"):
            self._containers[step.key] = engine_id

    def _close(self, node: Node) -> None:
        key = node.step.key
        with self._lock:
            if self._open[key] > 1:
                self._open[key] -= 1
                return
            failure = self._failures.get(key)
            container_id = self._containers.get(key, "")
        # The object stays claimed until its end has been told.
        if not isinstance(failure, Obsolete):
            self._watcher.object_ended(key, container_id, failure)
        with self._lock:
            self._open[key] -= 1
        self._watcher.object_freed(key)

    def _explain_skip(self, node: Node) -> None:
        """A step that never ran leaves its object with a reason: the step it waited for, or that
        the agent stops, or that the cleanup was deferred."""
        key = node.step.key
        for number in node.after:
            blocker = self._by_number[number].step
            failure = self._failures.get(blocker.key)
            if failure is None or self._outcomes[number] == "ok":
                continue
            text = str(failure) if blocker.key == key else f"{blocker.name}: {failure}"
            kind = type(failure) if isinstance(failure, EngineError | Obsolete) else AgentError
            self._failures.setdefault(key, kind(text))
            return
        if not node.rescues:
            self._failures.setdefault(key, Obsolete("Not done in this cycle."))

    def _resolve(self, ref: Ref) -> str:
        if ref.node is None:
            return ref.id
        with self._lock:
            return self._results[ref.node]

    def _can_resolve(self, node: Node) -> bool:
        container = getattr(node.step, "container", None)
        if container is None or container.node is None:
            return True
        with self._lock:
            return bool(self._results.get(container.node))
