"""What a change of fields does to a workspace: the one computation behind preview and saving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.protocol.compare import (
    IN_PLACE,
    NONE,
    REPLACE,
    compare,
    downtime_reason,
    overall_effect,
)
from agent.protocol.report import FieldChange
from workspaces.choices import DesiredState, WorkspaceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.protocol.spec import WorkspaceSpec
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace

CREATE: Final = "create"
START: Final = "start"
STOP: Final = "stop"

_MASKED: Final = frozenset({"secret_env"})
# Writable fields that the container's spec does not hold, and what a difference does.
_OUTSIDE_THE_SPEC: Final = (
    ("description", NONE),
    ("desired_state", IN_PLACE),
    ("startup_timeout", NONE),
    ("drain_timeout", NONE),
    ("shared_volumes", NONE),
    ("idle_stop_minutes", NONE),
    ("schedule", NONE),
)


def field_changes(
    old: WorkspaceFields,
    new: WorkspaceFields,
    *,
    specs: tuple[WorkspaceSpec, WorkspaceSpec],
    router_mode: str,
) -> tuple[FieldChange, ...]:
    """Field by field, secrets masked; empty when both say the same in other words or order."""
    changes = list(compare(*specs, router_mode=router_mode))
    if old.image != new.image and not any(change.field == "image" for change in changes):
        # Two images with one reference: another row to follow, the same content for now.
        changes.append(
            FieldChange(field="image", old=str(old.image), new=str(new.image), effect=NONE)
        )
    if old.gpus != new.gpus and not any(change.field == "gpus" for change in changes):
        # The same cards, asked for in another way.
        told = (msgspec.to_builtins(old.gpus), msgspec.to_builtins(new.gpus))
        changes.append(FieldChange(field="gpus", old=told[0], new=told[1], effect=NONE))
    for name, effect in _OUTSIDE_THE_SPEC:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            changes.append(FieldChange(field=name, old=before, new=after, effect=effect))
    return tuple(changes)


def decide_action(
    changes: tuple[FieldChange, ...], *, old_state: str, new_state: str, has_container: bool
) -> str:
    """What the agent will do, in the API's words."""
    if new_state == DesiredState.STOPPED and old_state != new_state:
        return STOP
    effect = overall_effect(changes)
    if new_state == DesiredState.STOPPED:
        # A stopped container gets its new name; its next start brings it up to date otherwise.
        is_renamed = any(change.field == "name" for change in changes)
        return IN_PLACE if is_renamed and has_container else NONE
    if effect == NONE:
        return NONE
    if not has_container:
        return CREATE
    if effect == IN_PLACE and old_state != new_state:
        return START
    return effect


def left_undone(ledger: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[FieldChange, ...]:
    """What a stopped container lacks, from the changes saved since it last ran, oldest first.

    What was changed there and back again is none. A masked secret can't tell, so it counts.
    """
    net: dict[str, FieldChange] = {}
    for change in (change for changes in ledger for change in changes):
        if change["effect"] != REPLACE:
            continue
        earlier = net.get(change["field"])
        net[change["field"]] = FieldChange(
            field=change["field"],
            old=change["from"] if earlier is None else earlier.old,
            new=change["to"],
            effect=REPLACE,
        )
    return tuple(
        change for change in net.values() if change.old != change.new or change.field in _MASKED
    )


def decide_downtime(
    action: str,
    *,
    specs: tuple[WorkspaceSpec, WorkspaceSpec],
    shared_volumes: bool = False,
    was_running: bool = True,
) -> tuple[str, str]:
    """`none` or `brief`, and why a replace can't do without; `specs` are the old and the new."""
    if action == STOP:
        return "brief", ""
    if action != REPLACE or not was_running:
        return "none", ""
    old, new = specs
    reason = downtime_reason(
        new,
        writes_before=[mount.target for mount in old.mounts if not mount.read_only],
        shared_volumes=shared_volumes,
    )
    return ("brief" if reason else "none"), reason


def decide_pending_status(workspace: Workspace, action: str) -> str:
    """What to show until the agent has seen the new revision; `workspace` is still the old row.

    A change too small to show keeps an earlier one that the agent has not seen either.
    """
    if action == STOP:
        return WorkspaceStatus.STOPPING.value
    if action in (CREATE, REPLACE, START):
        return WorkspaceStatus.DEPLOYMENT_PENDING.value
    if workspace.observed_revision < workspace.revision:
        return workspace.pending_status
    return ""
