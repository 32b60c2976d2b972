"""Start, stop and redeploy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import transaction

from trailer import policy
from workspaces.choices import DesiredState, WorkspaceStatus
from workspaces.fields import fields_of
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.change import change_prepare, change_retry, change_save
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import workspace_lock
from workspaces.services.loss import revision_without_loss
from workspaces.services.update import plan_of
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from trailer.policy import Actor
    from workspaces.models import Workspace
    from workspaces.services.change import Change
    from workspaces.services.update import Plan

# Statuses that contradict what is wanted: asking again is then a request to try again.
_RETRIED = {
    DesiredState.RUNNING: (WorkspaceStatus.ERROR, WorkspaceStatus.STOPPED),
    DesiredState.STOPPED: (WorkspaceStatus.ERROR, WorkspaceStatus.RUNNING),
}


def workspace_start(
    *,
    actor: Actor,
    workspace: Workspace,
    expected_revision: int | None = None,
    refuse_loss: bool = False,
) -> Workspace:
    """What was changed while it was stopped is brought to it, which may replace its container."""
    if refuse_loss:
        policy.require(actor, "workspace.modify", workspace)
        expected_revision = revision_without_loss(
            actor, workspace, expected_revision, lambda current: _started(actor, current)
        )
    return _run(actor, workspace, DesiredState.RUNNING, expected_revision)


def workspace_stop(
    *, actor: Actor, workspace: Workspace, expected_revision: int | None = None
) -> Workspace:
    return _run(actor, workspace, DesiredState.STOPPED, expected_revision)


def workspace_redeploy(
    *,
    actor: Actor,
    workspace: Workspace,
    expected_revision: int | None = None,
    refuse_loss: bool = False,
) -> Workspace:
    """A new container although no field moved; a stopped workspace is started with it."""
    policy.require(actor, "workspace.modify", workspace)
    if refuse_loss:
        expected_revision = revision_without_loss(
            actor, workspace, expected_revision, lambda current: _redeployed(actor, current)
        )
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        change = _redeployed(actor, current)
        change_save(change, actor=actor, kind=UserEvent.REDEPLOY, cause="Redeploy requested.")
        return workspace_get(current.pk)


def redeploy_plan(*, actor: Actor, workspace: Workspace) -> Plan:
    """What workspace_redeploy() would do; saves nothing."""
    policy.require(actor, "workspace.modify", workspace)
    return plan_of(actor, _redeployed(actor, workspace_get(workspace.pk)))


def _redeployed(actor: Actor, current: Workspace) -> Change:
    fields = replace(fields_of(current), desired_state=DesiredState.RUNNING.value)
    return change_prepare(actor=actor, workspace=current, fields=fields, redeploy=True)


def _started(actor: Actor, current: Workspace) -> Change:
    fields = replace(fields_of(current), desired_state=DesiredState.RUNNING.value)
    return change_prepare(actor=actor, workspace=current, fields=fields)


def _run(
    actor: Actor, workspace: Workspace, state: DesiredState, expected_revision: int | None
) -> Workspace:
    """Asking again for what is wanted already changes nothing, unless it is not so: then retry."""
    policy.require(actor, "workspace.modify", workspace)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        check_by_hand(current)
        return run_locked(current, state, actor=actor)


def run_locked(
    current: Workspace, state: DesiredState, *, actor: Actor, by: str = "", cause: str = ""
) -> Workspace:
    """Under the locks of workspaces.services.locking. Without an actor it is the platform itself,
    `by` name: a schedule, or having been idle."""
    kind = UserEvent.START if state == DesiredState.RUNNING else UserEvent.STOP
    with transaction.atomic():
        fields = replace(fields_of(current), desired_state=state.value)
        change = change_prepare(actor=actor, workspace=current, fields=fields)
        if not change.changes:
            if workspace_status(current) not in _RETRIED[state]:
                return current
            change = change_retry(current)
        cause = cause or f"{kind.name.capitalize()} requested."
        change_save(change, actor=actor, kind=kind, cause=cause, by=by)
        return workspace_get(current.pk)
