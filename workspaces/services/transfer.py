"""Handing a workspace over to another owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import events, policy
from trailer.access.grants import grant_give
from trailer.access.models import Grant, ObjectKind, Role
from trailer.access.quotas import quotas_on
from trailer.access.subjects import user_named
from trailer.errors import Invalid
from workspaces.selectors import workspace_get
from workspaces.services.by_hand import check_by_hand
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.services.quota import check_quota, demand_of_row
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
    """`data` holds the new owner, by id or username. The former owner stays as a manager, or, with
    a quota, as a viewer: else handing over and going on would be a way around it.

    Nothing on the host changes, so the revision stays.
    """
    policy.require(actor, "workspace.transfer", workspace)
    check_known(data, ("owner",))
    if data.get("owner") is None:
        raise Invalid.field("owner", "owner is required.")
    user = user_named(text(data["owner"], "owner", max_length=_NAME_LIMIT), field="owner")
    if not user.is_active:
        raise Invalid.field("owner", f"{user.username} is deactivated and can't own anything new.")
    if not policy.allows(user, "host.workspaces", workspace.host):
        sentence = f"{user.username} may not create workspaces on host {workspace.host.name}."
        raise Invalid.field("owner", sentence)
    with transaction.atomic():
        current = workspace_lock(workspace, expected_revision=expected_revision)
        check_by_hand(current)
        if current.owner_id != user.pk:
            check_quota(
                actor=actor,
                owner_id=user.pk,
                wanted=demand_of_row(current),
                workspace_id=current.pk,
            )
            _hand_over(actor, current, user)
        return workspace_get(current.pk)


def _hand_over(actor: Actor, workspace: Workspace, user: User) -> None:
    former = workspace.owner
    passes_on = former.pk == actor.pk and quotas_on(former.pk).exists()
    workspace.owner = user
    workspace.save(update_fields=["owner", "updated_at"])
    Grant.objects.filter(kind=ObjectKind.WORKSPACE, object_id=workspace.pk, user=user).delete()
    grant_give(
        kind=ObjectKind.WORKSPACE,
        object_id=workspace.pk,
        user=former,
        role=Role.VIEWER if passes_on else Role.MANAGER,
        granted_by=actor,
    )
    cause = f"Handed over from {former.username} to {user.username}."
    event_write(workspace, actor=actor, kind=UserEvent.TRANSFER, cause=cause)
    events.publish("workspace", workspace.pk)
