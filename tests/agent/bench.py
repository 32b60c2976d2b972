"""The agent's decisions and acts on an in-memory engine, one cycle at a time and in one thread."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.apply.ops import Ops
from agent.diff.view import Knowledge
from agent.errors import AgentError, StepFailed
from agent.plan import Plan
from agent.planner import make_plan
from agent.protocol.state import HostState
from agent.runtime.fake import FakeRuntime
from agent.runtime.port import Look
from agent.steps import BuildImage, CancelBuild, PullImage, Ref, SnapshotImage, Step
from agent.store.database import Database
from agent.store.journal import Journal
from tests.agent.documents import IMAGE_REF, NOW, knowledge


class NoWork:
    """Long work that ends at once and leaves the image."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime

    def start(self, step: PullImage | BuildImage | SnapshotImage) -> None:
        self._runtime.add_image(step.request.ref if isinstance(step, BuildImage) else step.ref)

    def cancel(self, step: CancelBuild) -> None:
        """Nothing runs."""


class Bench:
    """`cycle` plans and performs every node in order, as the executor would."""

    def __init__(self, folder: Path) -> None:
        self.runtime = FakeRuntime()
        self.runtime.add_image(IMAGE_REF)
        self.journal = Journal(Database(folder / "agent.sqlite3"))
        self._ops = Ops(self.runtime, self.journal, NoWork(self.runtime))

    def knows(self, **fields: Any) -> Knowledge:
        view = self.journal.view()
        given = {
            "owned_ids": view.owned_ids,
            "containers": view.containers,
            "applied": view.applied,
            "stopped_ids": view.stopped_ids,
            "stopped_to_replace": view.stopped_to_replace,
            "failed_replaces": view.failed_replaces,
            "builds": view.builds,
            "made_images": view.made_images,
            "pulled": view.pulled,
            "loose_steps": view.loose_steps,
            "routes": view.routes,
            **fields,
        }
        return knowledge(**given)

    def plan(self, desired: HostState, **fields: Any) -> Plan:
        observed = self.runtime.observe(Look())
        return make_plan(desired, observed, self.knows(**fields), now=NOW)

    def cycle(self, desired: HostState, **fields: Any) -> Plan:
        plan = self.plan(desired, **fields)
        for workspace_id, container_id in plan.adopted:
            self.journal.own(container_id, kind="workspace", object_id=workspace_id)
        results: dict[int, str] = {}
        failed: set[int] = set()
        skipped: set[int] = set()
        for node in plan.nodes:
            if node.rescues and not failed & set(node.rescues):
                continue
            if (failed | skipped) & set(node.after):
                skipped.add(node.number)
                continue
            try:
                results[node.number] = self._ops.perform(
                    node.step, lambda ref: self._resolve(ref, results), lambda: True
                )
            except AgentError:
                failed.add(node.number)
            except KeyError:
                # What a rescue would undo was never made.
                assert node.rescues
        touched = {node.step.key for node in plan.nodes if node.number in failed | skipped}
        for desired_workspace in desired.workspaces:
            if desired_workspace.id in plan.unfinished:
                continue
            if f"workspace:{desired_workspace.id}" not in touched:
                self.journal.mark_applied(desired_workspace.id, desired_workspace.revision)
        return plan

    def perform(self, step: Step) -> None:
        """One step alone, as if the host had changed since its plan."""
        with suppress(StepFailed):
            self._ops.perform(step, lambda ref: ref.id, lambda: True)

    def settle(self, desired: HostState, *, most: int = 4) -> int:
        """Cycles until there is nothing to do; fails when that never happens."""
        for number in range(1, most + 1):
            if not self.cycle(desired).nodes:
                return number
        raise AssertionError(f"not settled: {self.plan(desired).render()}")

    @staticmethod
    def _resolve(ref: Ref, results: dict[int, str]) -> str:
        return ref.id if ref.node is None else results[ref.node]
