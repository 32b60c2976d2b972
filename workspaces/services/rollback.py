"""Return to the fields of an earlier revision, as a new revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import policy
from trailer.errors import Invalid
from trailer.sealed import unseal_mapping
from workspaces.fields import fields_of
from workspaces.models import Revision
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.change import change_prepare, change_save
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import workspace_lock
from workspaces.services.loss import revision_without_loss
from workspaces.services.update import plan_of
from workspaces.validation.fields import WRITABLE, fields_for_update
from workspaces.validation.scalars import integer

if TYPE_CHECKING:
    from trailer.policy import Actor
    from workspaces.models import Workspace
    from workspaces.services.change import Change
    from workspaces.services.update import Plan

# What a rollback leaves alone: where it runs can't change, and whether it runs is start and stop.
_KEPT = frozenset({"host", "desired_state"})
_MAX_REVISION = 2**31 - 1


def workspace_rollback(
    *,
    actor: Actor,
    workspace: Workspace,
    revision: Any,
    expected_revision: int | None = None,
    refuse_loss: bool = False,
) -> Workspace:
    """Restores every field of that revision, secrets included, except the run state."""
    policy.require(actor, "workspace.modify", workspace)
    number = integer(revision, "revision", least=1, most=_MAX_REVISION)
    if refuse_loss:
        expected_revision = revision_without_loss(
            actor, workspace, expected_revision, lambda current: _prepare(actor, current, number)
        )
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        check_by_hand(current)
        change = _prepare(actor, current, number)
        if not change.changes:
            return current
        cause = f"Rolled back to revision {number}."
        change_save(change, actor=actor, kind=UserEvent.ROLLBACK, cause=cause)
        return workspace_get(current.pk)


def rollback_plan(*, actor: Actor, workspace: Workspace, revision: Any) -> Plan:
    """What workspace_rollback() would do; saves nothing."""
    policy.require(actor, "workspace.modify", workspace)
    number = integer(revision, "revision", least=1, most=_MAX_REVISION)
    return plan_of(actor, _prepare(actor, workspace_get(workspace.pk), number))


def _prepare(actor: Actor, current: Workspace, number: int) -> Change:
    row = Revision.objects.filter(workspace=current, revision=number).first()
    if row is None:
        raise Invalid.field(
            "revision", f"The workspace {current.name} has no stored revision {number}."
        )
    stored = {name: row.fields[name] for name in row.fields if name in WRITABLE - _KEPT}
    stored["secret_env"] = unseal_mapping(row, "secret_env_token")
    fields = fields_for_update(fields_of(current), stored)
    return change_prepare(actor=actor, workspace=current, fields=fields)
