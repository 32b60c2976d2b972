"""Snapshot of a running workspace: asks its agent to commit the container to a new image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from images.services.snapshots import check_no_snapshot_under_way, snapshot_create
from trailer import events, policy
from trailer.access.grants import grant_give, grants_inherit
from trailer.access.models import ObjectKind, Role
from trailer.errors import Conflict, NotAllowed
from workspaces.choices import WorkspaceStatus
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.status import workspace_badge, workspace_is_fresh, workspace_status
from workspaces.validation.fields import check_known
from workspaces.validation.scalars import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from images.models import Image
    from trailer.policy import Actor
    from workspaces.models import Workspace

_NAME_LIMIT = 128


def workspace_snapshot(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
) -> tuple[Workspace, Image]:
    """`data` may hold the name of the new image. The workspace itself keeps its revision: nothing
    about it is to change.

    A snapshot copies the workspace's files into something the actor owns, so seeing the workspace
    is not enough.
    """
    policy.require(actor, "workspace.modify", workspace)
    policy.require(actor, "image.create")
    _check_room(actor, workspace)
    check_known(data, ("name",))
    given = data.get("name")
    name = "" if given is None else text(given, "name", max_length=_NAME_LIMIT)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        _check_possible(current)
        image = snapshot_create(
            actor=actor,
            host=current.host,
            name=name,
            workspace=(current.pk, current.name),
            source_image=current.image_id,
        )
        _share_with_the_rest(actor, current, image)
        cause = f"Snapshot {image.name} requested."
        event_write(current, actor=actor, kind=UserEvent.SNAPSHOT, cause=cause)
        events.publish("workspace", current.pk)
    return current, image


def _share_with_the_rest(actor: Actor, workspace: Workspace, image: Image) -> None:
    """Who may run commands in the workspace could copy its files anyway; viewers could not."""
    grants_inherit(source=workspace, target=image, least=Role.EDITOR, granted_by=actor)
    if workspace.owner_id != actor.pk:
        grant_give(
            kind=ObjectKind.IMAGE,
            object_id=image.pk,
            user=workspace.owner,
            role=Role.MANAGER,
            granted_by=actor,
        )


def _check_room(actor: Actor, workspace: Workspace) -> None:
    """Who sees a workspace knows its host by name, whether or not they may see the host."""
    if not policy.allows(actor, "host.images", workspace.host):
        raise NotAllowed(
            f"You may not create images on the host {workspace.host.name}. Ask an administrator."
        )


def _check_possible(workspace: Workspace) -> None:
    """Only the agent of a host that answers can do it, and only to a container that runs."""
    host = workspace.host
    if not host.enabled:
        raise Conflict(f"The host {host.name} is disabled. Enable it first.")
    if not workspace_is_fresh(workspace, timezone.now()):
        raise Conflict(
            f"The host is silent: nothing was heard from {host.name} for a while. "
            "Try again when it is back.",
            code="host_silent",
        )
    # Before the status, which says the same in fewer words once the agent has begun.
    check_no_snapshot_under_way(workspace.pk, workspace.name)
    if workspace_status(workspace) != WorkspaceStatus.RUNNING:
        label = workspace_badge(workspace).label.lower()
        raise Conflict(
            f"Workspace {workspace.name} is not running ({label}). "
            "Only a running one can be snapshotted.",
            code="not_running",
        )
