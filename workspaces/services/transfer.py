"""Handing a workspace over to another owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from images.services.snapshots import snapshots_abandon
from trailer.access.transfer import check_capable, owner_replace, transfer
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.services.quota import check_quota, demand_of_row

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from trailer.policy import Actor
    from workspaces.models import Workspace


def workspace_transfer(
    *, actor: Actor, workspace: Workspace, owner: str, expected_revision: int | None = None
) -> Workspace:
    """`owner` is an id or a username."""

    def lock() -> Workspace:
        return workspace_lock(workspace, expected_revision=expected_revision)

    def give(current: Workspace, user: User) -> None:
        check_by_hand(current, instead="Hand over the stack; that takes its services along.")
        check_capable(user, "host.workspaces", current.host)
        workspace_hand_over(actor=actor, workspace=current, user=user)

    current = transfer(actor=actor, obj=workspace, owner=owner, lock=lock, give=give)
    return workspace_get(current.pk)


def workspace_hand_over(
    *, actor: Actor, workspace: Workspace, user: User, share: bool = True
) -> None:
    """Inside the caller's transaction, under the locks of workspaces.services.locking."""
    check_quota(
        actor=actor,
        owner_id=user.pk,
        wanted=demand_of_row(workspace),
        workspace_id=workspace.pk,
    )
    # What it would hold is the new owner's from now on.
    snapshots_abandon(workspace.pk)
    former = owner_replace(actor=actor, obj=workspace, user=user, share=share)
    cause = f"Handed over from {former.username} to {user.username}."
    event_write(workspace, actor=actor, kind=UserEvent.TRANSFER, cause=cause)
