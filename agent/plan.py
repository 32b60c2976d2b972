"""The plan as data: numbered nodes, what was found, and their one text form.

`Plan.render()` is the golden test, the log line and the dry run at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.protocol.report import Leftover
    from agent.steps import Step


@dataclass(frozen=True)
class Node:
    """`after` must have succeeded first. A node with `rescues` runs only when one of those failed
    (and not where something newer is wanted: the next plan sees to that).
    Nodes marked `cleanup` run last, and only in the newest cycle."""

    number: int
    step: Step
    after: tuple[int, ...] = ()
    rescues: tuple[int, ...] = ()
    cleanup: bool = False

    def render(self) -> str:
        step = self.step
        parts = [f"{self.number}. {step.verb} {step.name!r}"]
        if step.detail():
            parts.append(f"({step.detail()})")
        text = f"{' '.join(parts)}: {step.cause}"
        if step.changes:
            text += " [" + ", ".join(change.field for change in step.changes) + "]"
        if self.after:
            text += f" <- {', '.join(map(str, self.after))}"
        if self.rescues:
            text += f" if {', '.join(map(str, self.rescues))} fails"
        if self.cleanup:
            text += " {cleanup}"
        return text


@dataclass(frozen=True, kw_only=True)
class WorkspaceFinding:
    """A workspace's status as the observation shows it."""

    workspace_id: str
    revision: int
    status: str
    message: str = ""
    container_id: str = ""
    container_name: str = ""
    started_at: str = ""
    restart_count: int = 0
    health: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceFinding:
    resource: str
    object_id: str
    status: str
    message: str = ""
    engine_id: str = ""
    instance: str = ""


@dataclass(frozen=True, kw_only=True)
class ImageFinding:
    image_id: str
    present: bool
    engine_id: str = ""
    digest: str = ""
    size_bytes: int | None = None
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ImageCheck:
    """One look at a registry: what it has now, or in `message` why that is not known."""

    image_id: str
    present: bool
    engine_id: str = ""
    digest: str = ""
    size_bytes: int | None = None
    available_digest: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class BuildFinding:
    """A build that is not begun, and why."""

    image_id: str
    build_id: str
    status: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class TombstoneFinding:
    tombstone_id: str
    done: bool
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class LeftoversFinding:
    leftovers: tuple[Leftover, ...]


Finding = (
    WorkspaceFinding
    | ResourceFinding
    | ImageFinding
    | BuildFinding
    | TombstoneFinding
    | LeftoversFinding
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`cleanup` says what becomes of unwanted objects: done, held or skipped (none unwanted).
    `adopted` are containers found by name and signature that the journal does not know yet.
    `in_place` are workspaces, with their revisions, of which nothing is left to do, `unfinished`
    those of which something still is after this plan."""

    nodes: tuple[Node, ...] = ()
    findings: tuple[Finding, ...] = ()
    adopted: tuple[tuple[str, str], ...] = ()
    cleanup: str = "skipped"
    message: str = ""
    recheck_after: float | None = None
    # Workspaces whose removal the brake holds.
    held_workspaces: tuple[str, ...] = ()
    in_place: tuple[tuple[str, int], ...] = ()
    unfinished: frozenset[str] = frozenset()

    def render(self) -> str:
        lines = [node.render() for node in self.nodes]
        if self.message:
            lines.append(f"! {self.message}")
        return "\n".join(lines) or "nothing to do"


@dataclass
class PlanBuilder:
    """Collects nodes in dependency order; used by the planner only."""

    nodes: list[Node] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    adopted: list[tuple[str, str]] = field(default_factory=list)
    cleanup: str = "skipped"
    message: str = ""
    recheck_after: float | None = None
    held_workspaces: tuple[str, ...] = ()
    in_place: list[tuple[str, int]] = field(default_factory=list)
    unfinished: set[str] = field(default_factory=set)

    def add(
        self,
        step: Step,
        *,
        after: tuple[int, ...] = (),
        rescues: tuple[int, ...] = (),
        cleanup: bool = False,
    ) -> int:
        number = len(self.nodes) + 1
        self.nodes.append(
            Node(
                number=number,
                step=step,
                after=tuple(sorted(set(after))),
                rescues=rescues,
                cleanup=cleanup,
            )
        )
        return number

    def recheck(self, seconds: float) -> None:
        known = self.recheck_after
        self.recheck_after = seconds if known is None else min(known, seconds)

    def build(self) -> Plan:
        return Plan(
            nodes=tuple(self.nodes),
            findings=tuple(self.findings),
            adopted=tuple(self.adopted),
            cleanup=self.cleanup,
            message=self.message,
            recheck_after=self.recheck_after,
            held_workspaces=self.held_workspaces,
            in_place=tuple(self.in_place),
            unfinished=frozenset(self.unfinished),
        )
