"""Deletion of workspaces: the row goes at once, the container by an order to its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from agent.protocol import naming
from hosts.choices import TombstoneKind
from hosts.services.desired import tombstone_create
from images.services.snapshots import snapshots_abandon
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.audit.record import record
from workspaces.services.by_hand import check_by_hand
from workspaces.services.locking import workspace_lock

if TYPE_CHECKING:
    from trailer.policy import Actor
    from workspaces.models import Workspace


def workspace_delete(
    *, actor: Actor, workspace: Workspace, expected_revision: int | None = None
) -> None:
    """Volumes and images stay; they have deletions of their own. A snapshot under way ends."""
    policy.require(actor, "workspace.delete", workspace)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        # It may have been handed over meanwhile.
        policy.require(actor, "workspace.delete", current)
        check_by_hand(current)
        workspace_remove(current, actor=actor)


def workspace_remove(current: Workspace, *, actor: Actor) -> None:
    """Inside the caller's transaction, under the locks of workspaces.services.locking."""
    tombstone_create(
        host_id=current.host_id,
        kind=TombstoneKind.WORKSPACE,
        object_id=current.pk,
        name=naming.container_name(current.name),
    )
    snapshots_abandon(current.pk)
    grants_forget(current)
    record("workspace.delete", current, actor=actor)
    events.publish("workspace", current.pk, deleted=True)
    current.delete()
