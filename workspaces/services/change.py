"""A change of a workspace's desired state: prepared once, then shown as a plan or saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Max

from agent.protocol.compare import NONE, REPLACE
from hosts.services.desired import host_desired_changed
from trailer import events
from workspaces.changes import (
    CREATE,
    START,
    STOP,
    decide_action,
    decide_downtime,
    decide_pending_status,
    field_changes,
    left_undone,
)
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.models import Event
from workspaces.services.gpus import gpus_for, held_by, holds_write
from workspaces.services.ledger import UserEvent, ledger_write
from workspaces.services.quota import check_quota, demand_of_fields, demand_of_row
from workspaces.services.references import image_for, networks_for, volumes_for
from workspaces.services.rights import (
    Brought,
    Parts,
    brought_after,
    brought_in,
    check_rights,
    uses_of,
    uses_with,
)
from workspaces.services.rows import columns, parts_write
from workspaces.services.rules import check_rules
from workspaces.services.timer import timer_settle
from workspaces.spec import spec_from_fields, workspace_spec

if TYPE_CHECKING:
    from agent.protocol.report import FieldChange
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace


# Events of the agent after which the container is as its revision says.
_UP_TO_DATE = ("create", "replace", "start")
# What takes a right to everything that the workspace is made of.
_MAKES_OR_STARTS = frozenset({CREATE, REPLACE, START})
# Who changes one of these, or asks again, has decided about the run: what was due is past.
_SETTLES = frozenset({"desired_state", "schedule", "redeploy"})


@dataclass(frozen=True, kw_only=True)
class Change:
    """`workspace` is the row before the change, with its parts."""

    workspace: Workspace
    fields: WorkspaceFields
    generation: int
    changes: tuple[FieldChange, ...]
    action: str
    downtime: str
    downtime_reason: str
    pending_status: str
    brought: Brought
    gpu_ids: tuple[str, ...] = ()
    # Saved earlier, while the workspace was stopped; this change brings it to the container.
    overdue: tuple[FieldChange, ...] = ()


def change_prepare(
    *, actor: Actor, workspace: Workspace, fields: WorkspaceFields, redeploy: bool = False
) -> Change:
    """Checks the new fields against the host and computes every difference; writes nothing.

    A container is made or started only with what may be used now, whoever asks for it.
    """
    old, host = fields_of(workspace), workspace.host
    image = image_for(actor, fields, host, workspace)
    volumes = volumes_for(actor, fields, host, workspace)
    networks = networks_for(actor, fields, host, workspace)
    check_rules(actor, fields, host=host, old=old, workspace_id=workspace.pk)
    generation = workspace.generation + int(redeploy)
    starts = old.desired_state != fields.desired_state
    gpu_ids = gpus_for(
        fields, host, workspace, judge=redeploy or starts or old.gpus != fields.gpus
    )
    spec = spec_from_fields(
        fields, image=image, volumes=volumes, generation=generation, gpu_ids=gpu_ids
    )
    specs = workspace_spec(workspace), spec
    changes = field_changes(old, fields, specs=specs, router_mode=host.router_mode)
    action = decide_action(
        changes,
        old_state=old.desired_state,
        new_state=fields.desired_state,
        has_container=bool(workspace.container_id),
    )
    overdue = _overdue(workspace) if action == START else ()
    if overdue:
        action = REPLACE
    downtime, downtime_reason = decide_downtime(
        action,
        specs=specs,
        shared_volumes=fields.shared_volumes,
        was_running=old.desired_state == DesiredState.RUNNING,
    )
    brought, owner = brought_after(actor, fields, workspace), workspace.owner_id
    if action in _MAKES_OR_STARTS:
        parts = Parts(image=image, volumes=volumes, networks=networks)
        check_rights(uses_with(brought, fields, parts, owner=owner, host=host), host.pk)
    return Change(
        workspace=workspace,
        fields=fields,
        generation=generation,
        changes=changes,
        action=action,
        downtime=downtime,
        downtime_reason=downtime_reason,
        pending_status=decide_pending_status(workspace, action),
        brought=brought,
        gpu_ids=gpu_ids,
        overdue=overdue,
    )


def _overdue(workspace: Workspace) -> tuple[FieldChange, ...]:
    """What was saved since the container was last made or started, and so awaits its start."""
    of_this = Event.objects.filter(workspace=workspace)
    ran = of_this.filter(kind__in=_UP_TO_DATE).aggregate(at=Max("revision"))["at"]
    if ran is None:
        return ()
    since = of_this.filter(revision__gt=ran, kind__in=list(UserEvent)).order_by("revision")
    return left_undone(since.values_list("changes", flat=True))


def change_retry(workspace: Workspace) -> Change:
    """The same desired state once more: a new revision makes the agent try again at once."""
    fields = fields_of(workspace)
    action = START if fields.desired_state == DesiredState.RUNNING else STOP
    if action == START:
        check_rights(uses_of(workspace, workspace.host), workspace.host_id)
    return Change(
        workspace=workspace,
        fields=fields,
        generation=workspace.generation,
        changes=(),
        action=action,
        downtime=NONE,
        downtime_reason="",
        pending_status=decide_pending_status(workspace, action),
        brought=brought_in(workspace),
        gpu_ids=held_by(workspace),
    )


def change_save(
    change: Change, *, actor: Actor, kind: UserEvent, cause: str, by: str = ""
) -> None:
    """Inside the caller's transaction, under the locks of workspaces.services.locking."""
    workspace, fields = change.workspace, change.fields
    check_quota(
        actor=actor,
        owner_id=workspace.owner_id,
        wanted=demand_of_fields(fields),
        before=demand_of_row(workspace),
        workspace_id=workspace.pk,
    )
    values = columns(fields) | change.brought.columns()
    values |= {
        "generation": change.generation,
        "revision": workspace.revision + 1,
        "pending_status": change.pending_status,
    }
    for name, value in values.items():
        setattr(workspace, name, value)
    workspace.save(update_fields=[*values, "updated_at"])
    parts_write(workspace, fields, {item.field for item in change.changes}, change.brought)
    holds_write(workspace, change.gpu_ids, shared=fields.gpus is not None and fields.gpus.shared)
    ledger_write(
        workspace, fields, actor=actor, kind=kind, cause=cause, changes=change.changes, by=by
    )
    if not change.changes or _SETTLES & {item.field for item in change.changes}:
        timer_settle(workspace)
    host_desired_changed(workspace.host_id)
    events.publish("workspace", workspace.pk)
