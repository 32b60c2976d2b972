"""Creation of workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from hosts.services.desired import host_desired_changed
from trailer import events, policy
from workspaces.choices import DesiredState, WorkspaceStatus
from workspaces.models import Workspace
from workspaces.selectors import workspace_get
from workspaces.services.gpus import gpus_for, holds_write
from workspaces.services.ledger import UserEvent, ledger_write
from workspaces.services.locking import host_lock
from workspaces.services.quota import check_quota, demand_of_fields
from workspaces.services.references import image_for, networks_for, volumes_for
from workspaces.services.rights import Parts, brought_after, check_rights, uses_with
from workspaces.services.rows import ALL_PARTS, columns, parts_write
from workspaces.services.rules import check_rules
from workspaces.validation.fields import fields_for_create

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields


def workspace_create(*, actor: Actor, data: Mapping[str, Any]) -> Workspace:
    """`data` is in the API's shape; at least name, host and image."""
    policy.require(actor, "workspace.create")
    fields = fields_for_create(data)
    with transaction.atomic():
        return workspace_insert(actor, fields, kind=UserEvent.CREATED, cause="Created.")


def workspace_insert(
    actor: Actor,
    fields: WorkspaceFields,
    *,
    kind: UserEvent,
    cause: str,
    stack_id: UUID | None = None,
    service: str = "",
) -> Workspace:
    """Inside the caller's transaction; the actor becomes the owner."""
    host = host_lock(actor, fields.host)
    policy.require(actor, "host.workspaces", host)
    image = image_for(actor, fields, host, None)
    volumes = volumes_for(actor, fields, host, None)
    networks = networks_for(actor, fields, host, None)
    check_rules(actor, fields, host=host)
    brought = brought_after(actor, fields, None)
    parts = Parts(image=image, volumes=volumes, networks=networks)
    check_rights(uses_with(brought, fields, parts, owner=actor.pk, host=host), host.pk)
    gpu_ids = gpus_for(fields, host, None, judge=True)
    check_quota(actor=actor, owner_id=actor.pk, wanted=demand_of_fields(fields))
    workspace = Workspace.objects.create(
        host=host,
        owner=actor,
        stack=stack_id,
        service=service,
        # Nothing is deployed for a workspace that is made stopped.
        pending_status=WorkspaceStatus.DEPLOYMENT_PENDING
        if fields.desired_state == DesiredState.RUNNING
        else WorkspaceStatus.STOPPED,
        **columns(fields),
        **brought.columns(),
    )
    # A new one has no rows that would have to go first.
    made = {part for part in ALL_PARTS if getattr(fields, part)}
    parts_write(workspace, fields, made, brought)
    if gpu_ids:
        holds_write(workspace, gpu_ids, shared=fields.gpus is not None and fields.gpus.shared)
    ledger_write(workspace, fields, actor=actor, kind=kind, cause=cause)
    host_desired_changed(host.pk)
    events.publish("workspace", workspace.pk)
    return workspace_get(workspace.pk)
