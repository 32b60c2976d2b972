"""A change of a workspace's desired state: prepared once, then shown as a plan or saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.protocol.compare import NONE
from hosts.services.desired import host_desired_changed
from trailer import events
from workspaces.changes import (
    START,
    STOP,
    decide_action,
    decide_downtime,
    decide_pending_status,
    field_changes,
)
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.services.ledger import UserEvent, ledger_write
from workspaces.services.references import check_networks, image_for, volumes_for
from workspaces.services.rows import columns, parts_write
from workspaces.services.rules import check_rules
from workspaces.spec import spec_from_fields, workspace_spec

if TYPE_CHECKING:
    from agent.protocol.report import FieldChange
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class Change:
    """`workspace` is the row before the change, with its parts."""

    workspace: Workspace
    fields: WorkspaceFields
    generation: int
    changes: tuple[FieldChange, ...]
    action: str
    downtime: str
    pending_status: str


def change_prepare(
    *, actor: Actor, workspace: Workspace, fields: WorkspaceFields, redeploy: bool = False
) -> Change:
    """Checks the new fields against the host and computes every difference; writes nothing."""
    old, host = fields_of(workspace), workspace.host
    image = image_for(actor, fields, host, workspace)
    volumes = volumes_for(actor, fields, host, workspace)
    check_networks(actor, fields, host, workspace)
    check_rules(actor, fields, host=host, old=old, workspace_id=workspace.pk)
    generation = workspace.generation + int(redeploy)
    spec = spec_from_fields(fields, image=image, volumes=volumes, generation=generation)
    changes = field_changes(
        old, fields, specs=(workspace_spec(workspace), spec), router_mode=host.router_mode
    )
    action = decide_action(
        changes,
        old_state=old.desired_state,
        new_state=fields.desired_state,
        has_container=bool(workspace.container_id),
    )
    return Change(
        workspace=workspace,
        fields=fields,
        generation=generation,
        changes=changes,
        action=action,
        downtime=decide_downtime(action, spec=spec),
        pending_status=decide_pending_status(workspace, action),
    )


def change_retry(workspace: Workspace) -> Change:
    """The same desired state once more: a new revision makes the agent try again at once."""
    fields = fields_of(workspace)
    action = START if fields.desired_state == DesiredState.RUNNING else STOP
    return Change(
        workspace=workspace,
        fields=fields,
        generation=workspace.generation,
        changes=(),
        action=action,
        downtime=NONE,
        pending_status=decide_pending_status(workspace, action),
    )


def change_save(change: Change, *, actor: Actor, kind: UserEvent, cause: str) -> None:
    """Inside the caller's transaction, under the locks of workspaces.services.locking."""
    workspace, fields = change.workspace, change.fields
    values = columns(fields) | {
        "generation": change.generation,
        "revision": workspace.revision + 1,
        "pending_status": change.pending_status,
    }
    for name, value in values.items():
        setattr(workspace, name, value)
    workspace.save(update_fields=[*values, "updated_at"])
    parts_write(workspace, fields, {item.field for item in change.changes})
    ledger_write(workspace, fields, actor=actor, kind=kind, cause=cause, changes=change.changes)
    host_desired_changed(workspace.host_id)
    events.publish("workspace", workspace.pk)
