"""Edits of workspaces, and the preview of an edit: both from the same computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import policy
from workspaces.fields import fields_of
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.change import change_prepare, change_save
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import workspace_lock
from workspaces.services.quota import demand_of_fields, demand_of_row, preview_quota
from workspaces.validation.fields import fields_for_update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.report import FieldChange
    from trailer.policy import Actor
    from workspaces.models import Workspace
    from workspaces.services.change import Change


@dataclass(frozen=True)
class Plan:
    action: str
    changes: tuple[FieldChange, ...]
    downtime: str


def workspace_update(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
) -> Workspace:
    """`data` holds what changes, in the API's shape. What changes nothing saves nothing."""
    policy.require(actor, "workspace.modify", workspace)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        # It may have been handed over meanwhile.
        policy.require(actor, "workspace.modify", current)
        check_by_hand(current)
        fields = fields_for_update(fields_of(current), data)
        change = change_prepare(actor=actor, workspace=current, fields=fields)
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
    check_by_hand(current)
    fields = fields_for_update(fields_of(current), data)
    change = change_prepare(actor=actor, workspace=current, fields=fields)
    preview_quota(
        actor=actor,
        owner_id=current.owner_id,
        wanted=demand_of_fields(fields),
        before=demand_of_row(current),
        workspace_id=current.pk,
    )
    return plan_of(change)


def plan_of(change: Change) -> Plan:
    changes = (*change.changes, *change.overdue)
    return Plan(action=change.action, changes=changes, downtime=change.downtime)
