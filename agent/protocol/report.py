"""What the agent tells the server: typed items, ordered by (epoch, seq), never by a clock."""

from __future__ import annotations

from typing import Any

import msgspec


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, rename={"old": "from", "new": "to"}):
    """One field of a spec, secrets already masked. `effect` is none, in_place or replace."""

    field: str
    old: Any = None
    new: Any = None
    effect: str = "none"


class WorkspaceStatus(
    msgspec.Struct, frozen=True, kw_only=True, tag="workspace", tag_field="kind"
):
    """Latest state of one workspace; coalesced in the outbox, older (epoch, seq) are dropped."""

    seq: int
    workspace_id: str
    # The desired revision that this observation already takes into account.
    revision: int
    status: str
    message: str = ""
    container_id: str = ""
    container_name: str = ""
    started_at: str = ""
    restart_count: int = 0
    health: str = ""
    exit_code: int | None = None


class ContainerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a container's main process ended; `signal` is the one that its code stands for."""

    code: int | None = None
    signal: str = ""
    oom: bool = False


class WorkspaceEvent(msgspec.Struct, frozen=True, kw_only=True, tag="event", tag_field="kind"):
    """One ledger row. `event` is create, replace, start, stop, heal, remove, rename, connect,
    disconnect, error, crashed (it ended by itself) or restarted (the engine started it again).

    Equal rows of the last two kinds that follow each other become one with a higher `count`; `at`
    is the first of them then, `last_at` the last. All others are each kept.
    """

    seq: int
    workspace_id: str
    event: str
    cause: str
    at: str
    changes: tuple[FieldChange, ...] = ()
    cycle: int | None = None
    revision: int | None = None
    # Of crashed and restarted, unless nobody knows, and of a heal that starts it again.
    exit: ContainerExit | None = None
    # From here on only of crashed and restarted.
    count: int = 1
    last_at: str = ""
    # Redacted, and for those alone who may read the logs.
    health_output: str = ""
    last_lines: str = ""


class ResourceStatus(msgspec.Struct, frozen=True, kw_only=True, tag="resource", tag_field="kind"):
    """State of a network or volume; `resource` is network or volume.

    `instance` tells one making of a volume from another; empty when it is not known.
    """

    seq: int
    resource: str
    object_id: str
    status: str
    message: str = ""
    engine_id: str = ""
    instance: str = ""


class BuildStatus(msgspec.Struct, frozen=True, kw_only=True, tag="build", tag_field="kind"):
    """State of one build or pull. Terminal ones (finished, failed, cancelled) are each kept."""

    seq: int
    image_id: str
    build_id: str
    status: str
    message: str = ""
    progress: int | None = None
    digest: str = ""
    engine_id: str = ""
    size_bytes: int | None = None
    log_bytes: int | None = None


class ImageObserved(msgspec.Struct, frozen=True, kw_only=True, tag="image", tag_field="kind"):
    """What the engine holds for an image outside a build (present, vanished, newer digest)."""

    seq: int
    image_id: str
    present: bool
    engine_id: str = ""
    digest: str = ""
    size_bytes: int | None = None
    available_digest: str = ""
    message: str = ""


class RegistryTested(msgspec.Struct, frozen=True, kw_only=True, tag="registry", tag_field="kind"):
    """Whether the engine could sign in; if not, why, in words."""

    seq: int
    test_id: str
    accepted: bool
    message: str = ""


class TombstoneDone(msgspec.Struct, frozen=True, kw_only=True, tag="tombstone", tag_field="kind"):
    seq: int
    tombstone_id: str
    # Empty when removed; otherwise why it is still there, in words.
    message: str = ""
    done: bool = True


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    resource: str
    name: str
    cause: str
    outcome: str
    started_at: str
    duration_ms: int
    message: str = ""


class CycleReport(msgspec.Struct, frozen=True, kw_only=True, tag="cycle", tag_field="kind"):
    """One cycle that did or failed something; quiet cycles are not reported."""

    seq: int
    number: int
    trigger: str
    started_at: str
    finished_at: str
    outcome: str
    cleanup: str
    engine_calls: int
    steps: tuple[StepReport, ...] = ()
    message: str = ""


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is foreign (made by others), impostor (carries our labels without our signature)
    or unclaimed (ours, but in no state document and without a tombstone)."""

    resource: str
    name: str
    engine_id: str
    reason: str
    message: str = ""


class LeftoversReport(
    msgspec.Struct, frozen=True, kw_only=True, tag="leftovers", tag_field="kind"
):
    """All of a host's leftovers; coalesced, sent only when the list changed."""

    seq: int
    leftovers: tuple[Leftover, ...]


ReportItem = (
    WorkspaceStatus
    | WorkspaceEvent
    | ResourceStatus
    | BuildStatus
    | ImageObserved
    | RegistryTested
    | TombstoneDone
    | CycleReport
    | LeftoversReport
)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    items: tuple[ReportItem, ...]


class ReportReply(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` holds every seq the agent may forget: applied, stale or refused for good."""

    accepted: tuple[int, ...]
    refused: dict[str, str] = {}
