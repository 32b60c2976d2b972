"""Edits of workspaces, and the preview of an edit: both from the same computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from agent.protocol.compare import REPLACE
from trailer import policy
from workspaces.fields import fields_of
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.change import change_prepare, change_save
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import workspace_lock
from workspaces.services.loss import NOTHING, loss_of, revision_without_loss
from workspaces.services.quota import demand_of_fields, demand_of_row, preview_quota
from workspaces.validation.fields import fields_for_update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.report import FieldChange
    from trailer.policy import Actor
    from workspaces.models import Workspace
    from workspaces.services.change import Change
    from workspaces.services.loss import Loss


@dataclass(frozen=True)
class Plan:
    action: str
    changes: tuple[FieldChange, ...]
    downtime: str
    downtime_reason: str = ""
    loss: Loss = NOTHING
    # What the action and the changes alone do not say.
    notes: tuple[str, ...] = ()


def workspace_update(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
    refuse_loss: bool = False,
) -> Workspace:
    """`data` holds what changes, in the API's shape. What changes nothing saves nothing.

    With `refuse_loss` nothing is saved that would throw files of the container away.
    """
    policy.require(actor, "workspace.modify", workspace)
    if refuse_loss:
        expected_revision = revision_without_loss(
            actor, workspace, expected_revision, lambda current: _prepare(actor, current, data)
        )
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        # It may have been handed over meanwhile.
        policy.require(actor, "workspace.modify", current)
        change = _prepare(actor, current, data)
        if not change.changes:
            return current
        names = dict.fromkeys(item.field for item in change.changes)
        change_save(
            change, actor=actor, kind=UserEvent.CHANGED, cause=f"Changed: {', '.join(names)}."
        )
        return workspace_get(current.pk)


def workspace_plan(*, actor: Actor, workspace: Workspace, data: Mapping[str, Any]) -> Plan:
    """What workspace_update() would do with the same data; saves nothing."""
    policy.require(actor, "workspace.modify", workspace)
    current = workspace_get(workspace.pk)
    change = _prepare(actor, current, data)
    preview_quota(
        actor=actor,
        owner_id=current.owner_id,
        wanted=demand_of_fields(change.fields),
        before=demand_of_row(current),
        workspace_id=current.pk,
    )
    return plan_of(actor, change)


def plan_of(actor: Actor, change: Change) -> Plan:
    """With what a replace would throw away, asked from the agent now."""
    return Plan(
        action=change.action,
        changes=(*change.changes, *change.overdue),
        downtime=change.downtime,
        downtime_reason=change.downtime_reason,
        loss=loss_of(actor, change.workspace, change.action),
        notes=_notes(change),
    )


def _notes(change: Change) -> tuple[str, ...]:
    """An engine gives a container its hostname once."""
    is_renamed = change.workspace.name != change.fields.name
    if not is_renamed or not change.workspace.container_id or change.action == REPLACE:
        return ()
    return ("The hostname inside keeps the old name until the container is replaced.",)


def _prepare(actor: Actor, current: Workspace, data: Mapping[str, Any]) -> Change:
    check_by_hand(current)
    fields = fields_for_update(fields_of(current), data)
    return change_prepare(actor=actor, workspace=current, fields=fields)
