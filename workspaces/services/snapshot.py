"""Snapshot of a running workspace: asks its agent to commit the container to a new image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from images.services.snapshots import (
    Source,
    check_image_right,
    check_no_snapshot_under_way,
    snapshot_create,
)
from trailer import events, policy
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

    A snapshot shows every file of the workspace, so it takes the right terminal. It belongs to the
    workspace's owner; the actor may use it as long as they have that right.
    """
    policy.require(actor, "workspace.copy", workspace)
    policy.require(actor, "image.create")
    check_known(data, ("name",))
    given = data.get("name")
    name = "" if given is None else text(given, "name", max_length=_NAME_LIMIT)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        # It may have been handed over, or the right taken back, while this waited.
        policy.require(actor, "workspace.copy", current)
        _check_capable(actor, current)
        check_image_right(current)
        _check_possible(current)
        image = snapshot_create(
            actor=actor,
            host=current.host,
            name=name,
            source=Source(current.pk, current.name, current.owner_id, current.image_id),
        )
        cause = f"Snapshot {image.name} requested."
        event_write(current, actor=actor, kind=UserEvent.SNAPSHOT, cause=cause)
        events.publish("workspace", current.pk)
    return current, image


def _check_capable(actor: Actor, workspace: Workspace) -> None:
    """Both who takes it and who will own it, unless an administrator takes it. Who sees a
    workspace knows its host by name, whether or not they may see the host."""
    host = workspace.host
    if not policy.allows(actor, "host.images", host):
        raise NotAllowed(
            f"You may not create images on the host {host.name}. Ask an administrator."
        )
    if actor.is_superuser or policy.allows(workspace.owner, "host.images", host):
        return
    raise NotAllowed(
        f"{workspace.owner.username}, to whom the snapshot would belong, may not create images on "
        f"the host {host.name}. Ask an administrator."
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
