"""Sharing an object: its list of grants is read and replaced as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from trailer import events, policy
from trailer.access.models import Grant, ObjectKind, Right, Role
from trailer.access.reliance import hosts_hold, hosts_judge_again
from trailer.access.subjects import subjects_of
from trailer.accounts.models import User
from trailer.audit.record import record
from trailer.errors import Invalid
from trailer.rows import row_lock
from trailer.validation import LIST_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.db.models import Model, QuerySet

    from trailer.access.subjects import Subject
    from trailer.policy import Actor

FIELD = "grants"
# The kinds whose grants may leave out a right.
NARROWED = frozenset({ObjectKind.WORKSPACE, ObjectKind.STACK})
ROLES = {role.label: role for role in Role}


def grants_of(*, actor: Actor, obj: Model) -> QuerySet[Grant]:
    """Expired ones too, until somebody removes them. For those who may share the object."""
    policy.require(actor, f"{_kind(obj)}.share", obj)
    return _rows(obj).select_related("user", "group", "granted_by")


def grants_replace(
    *, actor: Actor, obj: Any, entries: Sequence[Mapping[str, Any]]
) -> QuerySet[Grant]:
    """`entries` hold user or group, role and perhaps expires_at and rights; who is not in them
    loses access. Without `rights` a grant keeps those it had; a new one has all.

    Grants that stay as they were keep who gave them and when.
    """
    policy.require(actor, f"{_kind(obj)}.share", obj)
    if len(entries) > LIST_LIMIT:
        raise Invalid.field(FIELD, f"An object has at most {LIST_LIMIT} grants. Use groups.")
    subjects = subjects_of(entries, field=FIELD)
    _check_rights(obj, entries)
    with transaction.atomic():
        if _kind(obj) != ObjectKind.STACK:
            # As everywhere; a stack is locked before its host.
            hosts_hold([obj.host_id])
        current = row_lock(type(obj)._default_manager.all(), obj.pk)
        # It may have been handed over meanwhile.
        policy.require(actor, f"{_kind(obj)}.share", current)
        _check_owner(current, subjects)
        before = list(_rows(obj).select_related("user", "group"))
        old = {_key(grant.user or grant.group): grant for grant in before}
        _check_expiry(entries, subjects, old)
        for entry, subject in zip(entries, subjects, strict=True):
            _write(obj, subject, entry, old.pop(_key(subject), None), actor)
        Grant.objects.filter(pk__in=[grant.pk for grant in old.values()]).delete()
        after = list(_rows(obj).select_related("user", "group"))
        if (was := _words(before)) != (now := _words(after)):
            change = {"field": FIELD, "from": was, "to": now}
            record(f"{_kind(obj)}.share", obj, actor=actor, changes=[change])
            # Open pages and sockets look again at what they may see.
            events.publish(_kind(obj), obj.pk)
            hosts_judge_again([current.host_id])
    return grants_of(actor=actor, obj=obj) if _may_share(actor, obj) else Grant.objects.none()


def grant_give(
    *, kind: str, object_id: UUID, user: User, role: Role, granted_by: Actor, **fields: Any
) -> None:
    """Inside the caller's transaction; the caller has judged that it may be given."""
    Grant.objects.update_or_create(
        user=user,
        kind=kind,
        object_id=object_id,
        defaults={"role": role, "granted_by": granted_by, "expires_at": None, **fields},
    )


def grants_forget(obj: Model) -> None:
    """With the object that is being deleted."""
    _rows(obj).delete()


def _kind(obj: Model) -> str:
    return obj._meta.model_name or ""


def _rows(obj: Model) -> QuerySet[Grant]:
    return Grant.objects.filter(kind=_kind(obj), object_id=obj.pk)


def _may_share(actor: Actor, obj: Any) -> bool:
    """Asked anew: who replaced the list may have taken this right from themselves."""
    return policy.allows(actor, f"{_kind(obj)}.share", type(obj)._default_manager.get(pk=obj.pk))


def _write(
    obj: Model, subject: Subject, entry: Mapping[str, Any], row: Grant | None, actor: Actor
) -> None:
    role = ROLES[entry["role"]]
    values = {"role": role, "expires_at": entry.get("expires_at")}
    values |= _rights(entry.get("rights"), role, row)
    if row is None:
        who = {"user": subject} if isinstance(subject, User) else {"group": subject}
        Grant.objects.create(kind=_kind(obj), object_id=obj.pk, granted_by=actor, **who, **values)
    elif any(getattr(row, name) != value for name, value in values.items()):
        Grant.objects.filter(pk=row.pk).update(**values, granted_by=actor)


def _rights(given: Sequence[str] | None, role: Role, row: Grant | None) -> dict[str, bool]:
    if given is not None:
        return {right.value: right in given for right in Right}
    kept = {right.value: row is None or bool(getattr(row, right.value)) for right in Right}
    # Whoever was made an editor since must see what there is to edit.
    return kept | {"inspect": kept["inspect"] or role >= Role.EDITOR}


def _check_rights(obj: Model, entries: Sequence[Mapping[str, Any]]) -> None:
    for n, entry in enumerate(entries):
        rights = entry.get("rights")
        if rights is None:
            continue
        if _kind(obj) not in NARROWED:
            sentence = "Only grants on workspaces and stacks have rights. Leave them out."
        elif Right.INSPECT in rights:
            continue
        elif _kind(obj) == ObjectKind.STACK:
            sentence = "Who sees a stack sees its file. The rights must hold inspect."
        elif ROLES[entry["role"]] >= Role.EDITOR:
            sentence = "Who may change it sees how it is configured. The rights must hold inspect."
        else:
            continue
        raise Invalid.field(f"{FIELD}.{n}.rights", sentence)


def _check_owner(obj: Any, subjects: Sequence[Subject]) -> None:
    for n, subject in enumerate(subjects):
        if isinstance(subject, User) and subject.pk == obj.owner_id:
            raise Invalid.field(
                f"{FIELD}.{n}.user",
                f"{subject} owns this {_kind(obj)} and may do everything already.",
            )


def _check_expiry(
    entries: Sequence[Mapping[str, Any]],
    subjects: Sequence[Subject],
    old: Mapping[tuple[str, Any], Grant],
) -> None:
    """One that has expired may stay in the list as it is, so that a form can send it back."""
    for n, (entry, subject) in enumerate(zip(entries, subjects, strict=True)):
        expires, row = entry.get("expires_at"), old.get(_key(subject))
        if expires is None or expires > timezone.now():
            continue
        if row is None or row.expires_at != expires:
            raise Invalid.field(
                f"{FIELD}.{n}.expires_at", "A grant must end in the future, or never (null)."
            )


def _key(subject: Any) -> tuple[str, Any]:
    return (type(subject).__name__, subject.pk)


def _words(grants: Sequence[Grant]) -> list[str]:
    words = []
    for grant in grants:
        who = grant.user.username if grant.user else f"group {grant.group}"
        until = f" until {grant.expires_at:%Y-%m-%d %H:%M}" if grant.expires_at else ""
        without = [right.value for right in Right if not getattr(grant, right.value)]
        less = f" without {' and '.join(without)}" if without else ""
        words.append(f"{who}: {Role(grant.role).label}{less}{until}")
    return sorted(words)
