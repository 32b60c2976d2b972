"""What administrators may do to users and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from trailer import policy
from trailer.access.reliance import people_hold, people_judged_again
from trailer.accounts.models import ApiToken, Session, User
from trailer.accounts.passwords import set_password
from trailer.audit.record import differences, record
from trailer.errors import Conflict, Invalid
from trailer.rows import row_lock
from trailer.validation import check_columns, check_one_line, check_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trailer.policy import Actor

_OWNED: Final = ("workspaces", "images", "networks", "volumes", "registries")
# What somebody may do hangs on these.
_RIGHTS: Final = frozenset({"is_admin", "is_active", "groups"})
_ONE: Final = {"registries": "registry"}


class UserFields(TypedDict, total=False):
    username: str
    email: str
    password: str
    is_admin: bool
    is_active: bool
    groups: Sequence[str]


class GroupFields(TypedDict, total=False):
    name: str
    users: Sequence[str]


def user_create(*, actor: Actor, **fields: Unpack[UserFields]) -> User:
    policy.require(actor, "user.modify")
    user = User()
    try:
        with transaction.atomic():
            names = _apply(user, {"username": "", **fields})
            if not fields.get("password"):
                user.set_unusable_password()
            check_columns(user, names - {"password"})
            user.save(force_insert=True)
            _set_groups(user, fields.get("groups", ()))
            record("user.create", user, actor=actor, changes=differences({}, fields))
    except IntegrityError as error:
        raise _name_taken(user.username) from error
    return user


def user_update(*, actor: Actor, user: User, **fields: Unpack[UserFields]) -> User:
    policy.require(actor, "user.modify", user)
    try:
        with transaction.atomic():
            if _RIGHTS & set(fields):
                people_hold([user.pk])
            current = _locked(user)
            before = _told(current)
            names = _apply(current, fields)
            check_columns(current, names - {"password"})
            if before["is_admin"] and not current.is_admin:
                _check_not_last_admin(current)
            if names:
                current.save(update_fields=sorted(names))
            if "groups" in fields:
                _set_groups(current, fields["groups"])
            if "password" in names or not current.is_active:
                Session.objects.filter(user=current).delete()
                ApiToken.objects.filter(user=current, is_sign_in=True).delete()
            changes = differences(before, _told(current))
            if "password" in names:
                changes.append({"field": "password", "from": "old", "to": "new"})
            if changes:
                record("user.update", current, actor=actor, changes=changes)
            if _RIGHTS & {change["field"] for change in changes}:
                people_judged_again([current.pk])
    except IntegrityError as error:
        raise _name_taken(str(fields.get("username"))) from error
    return current


def user_delete(*, actor: Actor, user: User) -> None:
    policy.require(actor, "user.modify", user)
    with transaction.atomic():
        people_hold([user.pk])
        current = _locked(user)
        if current.pk == actor.pk:
            raise Conflict("You can't delete yourself. Ask another administrator.")
        if current.is_admin:
            _check_not_last_admin(current)
        if owned := _owned(current):
            raise Conflict(
                f"User {current.username} still owns {owned}. "
                "Delete them or hand them over first, or deactivate the user.",
                code="in_use",
            )
        record("user.delete", current, actor=actor)
        people_judged_again([current.pk])
        current.delete()


def group_create(*, actor: Actor, name: str, users: Sequence[str] = ()) -> Group:
    policy.require(actor, "group.modify")
    group = Group()
    try:
        with transaction.atomic():
            _name_group(group, name)
            group.save(force_insert=True)
            _set_members(group, users)
            told = {"users": sorted(users)}
            record("group.create", group, actor=actor, changes=differences({}, told))
    except IntegrityError as error:
        raise _group_taken(name) from error
    return group


def group_update(*, actor: Actor, group: Group, **fields: Unpack[GroupFields]) -> Group:
    policy.require(actor, "group.modify", group)
    try:
        with transaction.atomic():
            current = row_lock(Group.objects.all(), group.pk)
            members = _members(current)
            before = {"name": current.name, "users": members}
            if "name" in fields:
                _name_group(current, fields["name"])
                current.save(update_fields=["name"])
            if "users" in fields:
                _set_members(current, fields["users"])
            present = _members(current)
            after = {"name": current.name, "users": present}
            if changes := differences(before, after):
                record("group.update", current, actor=actor, changes=changes)
            people_judged_again(_ids({*members} ^ {*present}))
    except IntegrityError as error:
        raise _group_taken(str(fields.get("name"))) from error
    return current


def group_delete(*, actor: Actor, group: Group) -> None:
    """What was granted to the group goes with it."""
    policy.require(actor, "group.modify", group)
    with transaction.atomic():
        current = row_lock(Group.objects.all(), group.pk)
        record("group.delete", current, actor=actor)
        people_judged_again(_ids(_members(current)))
        current.delete()


def _apply(user: User, fields: Any) -> set[str]:
    """Set what is given; answers the columns that were touched."""
    check_text({name: value for name, value in fields.items() if name != "groups"})
    touched = set()
    if fields.get("email", user.email) != user.email:
        user.mail_is_vouched = True
        touched.add("mail_is_vouched")
    for name in ("username", "email", "is_active"):
        if name in fields:
            setattr(user, name, fields[name])
            touched.add(name)
    if "is_admin" in fields:
        user.is_superuser = user.is_staff = fields["is_admin"]
        touched |= {"is_superuser", "is_staff"}
    if fields.get("password"):
        set_password(user, fields["password"])
        touched.add("password")
    return touched


def _told(user: User) -> dict[str, Any]:
    return {
        "username": user.username,
        "email": user.email,
        "is_admin": user.is_admin,
        "is_active": user.is_active,
        "groups": sorted(user.groups.values_list("name", flat=True)),
    }


def _owned(user: User) -> str:
    """What the user owns, in words; empty when there is nothing."""
    counts = [(noun, getattr(user, noun).count()) for noun in _OWNED]
    return ", ".join(
        f"{count} {noun if count > 1 else _ONE.get(noun, noun.removesuffix('s'))}"
        for noun, count in counts
        if count
    )


def _set_groups(user: User, names: Sequence[str]) -> None:
    groups = list(Group.objects.filter(name__in=names))
    if missing := sorted(set(names) - {group.name for group in groups}):
        raise Invalid.field("groups", f"There is no group named {missing[0]}.")
    user.groups.set(groups)


def _name_group(group: Group, name: str) -> None:
    check_text({"name": name})
    group.name = name.strip()
    check_one_line(group.name, field="name", noun="The name")
    check_columns(group, ("name",))


def _members(group: Group) -> list[str]:
    return sorted(User.objects.filter(groups=group).values_list("username", flat=True))


def _ids(names: Collection[str]) -> list[Any]:
    return list(User.objects.filter(username__in=names).values_list("pk", flat=True))


def _set_members(group: Group, names: Sequence[str]) -> None:
    users = list(User.objects.filter(username__in=names))
    if missing := sorted(set(names) - {user.username for user in users}):
        raise Invalid.field("users", f"There is no user named {missing[0]}.")
    group.user_set.set(users)


def _locked(user: User) -> User:
    """All admins are locked with it: two of them can't take each other's rights at once."""
    list(User.objects.select_for_update().filter(is_superuser=True).order_by("pk"))
    return row_lock(User.objects.all(), user.pk)


def _check_not_last_admin(user: User) -> None:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if not others.exists():
        raise Conflict(f"User {user.username} is the last administrator. Make another one first.")


def _name_taken(username: str) -> Invalid:
    return Invalid.field("username", f"There is a user named {username} already.")


def _group_taken(name: str) -> Invalid:
    return Invalid.field("name", f"There is a group named {name} already.")
