"""Handing an object over to another owner: the same steps for every kind of object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import transaction
from django.utils import timezone

from trailer import events, policy
from trailer.access.grants import grant_give
from trailer.access.models import Grant, ObjectKind, Role
from trailer.access.quotas import quotas_on
from trailer.access.reliance import hosts_judge_again
from trailer.access.subjects import user_named
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from django.db.models import Model

    from trailer.accounts.models import User
    from trailer.policy import Actor

Row = TypeVar("Row", bound="Model")

FIELD: Final = "owner"
# Of these a quota counts what somebody owns.
_COUNTED: Final = frozenset({ObjectKind.WORKSPACE, ObjectKind.IMAGE, ObjectKind.STACK})
_ON_HOST: Final = {
    "host.workspaces": "create workspaces on",
    "host.images": "create images on",
    "host.volumes": "create volumes on",
    "host.networks": "create networks on",
    "host.addresses": "choose addresses or interfaces of networks on",
    "host.bind": "mount folders of",
}


def transfer(
    *,
    actor: Actor,
    obj: Model,
    owner: str,
    lock: Callable[[], Row],
    give: Callable[[Row, User], None],
) -> Row:
    """`lock` reads the row as it is now and keeps it so; `give` judges and hands over. `owner` is
    an id or a username.

    Nothing on the host changes, so the revision stays.
    """
    action = f"{obj._meta.model_name}.transfer"
    policy.require(actor, action, obj)
    user = _new_owner(owner)
    with transaction.atomic():
        current: Any = lock()
        if current.owner_id != user.pk:
            # Somebody may have handed it over while this request waited for the lock.
            policy.require(actor, action, current)
            give(current, user)
    result: Row = current
    return result


def check_capable(user: User, action: str, host: Any) -> None:
    """What somebody may not make on a host is not given to them there either."""
    if not policy.allows(user, action, host):
        sentence = f"{user.username} may not {_ON_HOST[action]} host {host.name}."
        raise Invalid.field(FIELD, sentence)


def owner_replace(*, actor: Actor, obj: Any, user: User, share: bool = True) -> User:
    """The former owner, who stays as a manager or, where a quota counts for them, as a viewer:
    else handing over and going on would be a way around it. Not so with `share` off, for what is
    reached through the object that it belongs to.

    Inside the caller's transaction, under its lock; needs `obj.owner`. The caller audits.
    """
    former: User = obj.owner
    kind = obj._meta.model_name
    obj.owner = user
    type(obj).objects.filter(pk=obj.pk).update(owner=user, updated_at=timezone.now())
    Grant.objects.filter(kind=kind, object_id=obj.pk, user=user).delete()
    if share:
        passes_on = kind in _COUNTED and former.pk == actor.pk and quotas_on(former.pk).exists()
        grant_give(
            kind=kind,
            object_id=obj.pk,
            user=former,
            role=Role.VIEWER if passes_on else Role.MANAGER,
            granted_by=actor,
        )
    events.publish(kind, obj.pk)
    hosts_judge_again([obj.host_id])
    return former


def hand_over(
    *,
    actor: Actor,
    obj: Any,
    user: User,
    share: bool = True,
    changes: Iterable[Mapping[str, Any]] = (),
) -> None:
    """The same with its row in the audit; `changes` are what else had to change."""
    former = owner_replace(actor=actor, obj=obj, user=user, share=share)
    moved = {"field": FIELD, "from": former.username, "to": user.username}
    record(f"{obj._meta.model_name}.transfer", obj, actor=actor, changes=[moved, *changes])


def part_of_stack(obj: Model, stack_name: str) -> Conflict:
    """What a stack made is its own, and would be missed by its next sync."""
    noun = str(obj._meta.verbose_name).capitalize()
    return Conflict(
        f"{noun} {obj} belongs to the stack {stack_name}. Hand over the stack; "
        "that takes everything along.",
        code="of_a_stack",
    )


def _new_owner(owner: str) -> User:
    user = user_named(owner, field=FIELD)
    if not user.is_active:
        raise Invalid.field(FIELD, f"{user.username} is deactivated and can't own anything new.")
    return user
