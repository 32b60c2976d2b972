"""Handing a workspace over to another owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import events, policy
from trailer.access.grants import grant_give
from trailer.access.models import Grant, ObjectKind, Role
from trailer.access.subjects import user_named
from trailer.errors import Invalid
from workspaces.selectors import workspace_get
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.validation.fields import check_known
from workspaces.validation.scalars import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.accounts.models import User
    from trailer.policy import Actor
    from workspaces.models import Workspace

_NAME_LIMIT = 150


def workspace_transfer(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
) -> Workspace:
    """`data` holds the new owner, by id or username. The former owner stays as a manager.

    Nothing on the host changes, so the revision stays.
    """
    policy.require(actor, "workspace.transfer", workspace)
    check_known(data, ("owner",))
    if data.get("owner") is None:
        raise Invalid.field("owner", "owner is required.")
    user = user_named(text(data["owner"], "owner", max_length=_NAME_LIMIT), field="owner")
    if not user.is_active:
        raise Invalid.field("owner", f"{user.username} is deactivated and can't own anything new.")
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        if current.owner_id != user.pk:
            _hand_over(actor, current, user)
        return workspace_get(current.pk)


def _hand_over(actor: Actor, workspace: Workspace, user: User) -> None:
    former = workspace.owner
    workspace.owner = user
    workspace.save(update_fields=["owner", "updated_at"])
    Grant.objects.filter(kind=ObjectKind.WORKSPACE, object_id=workspace.pk, user=user).delete()
    grant_give(
        kind=ObjectKind.WORKSPACE,
        object_id=workspace.pk,
        user=former,
        role=Role.MANAGER,
        granted_by=actor,
    )
    cause = f"Handed over from {former.username} to {user.username}."
    event_write(workspace, actor=actor, kind=UserEvent.TRANSFER, cause=cause)
    events.publish("workspace", workspace.pk)
