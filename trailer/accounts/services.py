"""What users may do to tokens, and admins to users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from trailer import policy, secrets
from trailer.accounts.models import ApiToken, TokenScope, User
from trailer.errors import Conflict, Invalid, NotAllowed
from trailer.rows import row_lock
from trailer.validation import check_columns, check_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trailer.policy import Actor

_WIDTH: Final = {TokenScope.READ: 0, TokenScope.WRITE: 1, TokenScope.ADMIN: 2}
_OWNED: Final = ("workspaces", "images", "networks", "volumes", "registries")


class TokenFields(TypedDict, total=False):
    name: str
    expires_at: datetime | None


class UserFields(TypedDict, total=False):
    username: str
    email: str
    password: str
    is_admin: bool
    is_active: bool
    groups: Sequence[str]


def token_create(
    *,
    actor: Actor,
    name: str,
    scope: str = TokenScope.WRITE,
    expires_at: datetime | None = None,
    granted_by: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """The token and its key, which nobody can read again. `granted_by` is the caller's own."""
    policy.require(actor, "apitoken.create")
    check_text({"name": name})
    key = secrets.new_token("api")
    token = ApiToken(
        user=actor, name=name, scope=scope, expires_at=expires_at, digest=secrets.digest(key)
    )
    check_columns(token, ("name", "scope", "expires_at"))
    _check_expiry(expires_at)
    if granted_by is not None and _WIDTH[TokenScope(scope)] > _WIDTH[TokenScope(granted_by.scope)]:
        raise NotAllowed("A token can't make a token that may do more than itself.")
    token.save(force_insert=True)
    return token, key


def token_update(*, actor: Actor, token: ApiToken, **fields: Unpack[TokenFields]) -> ApiToken:
    policy.require(actor, "apitoken.modify", token)
    for name, value in fields.items():
        setattr(token, name, value)
    check_text(fields)
    check_columns(token, fields)
    if "expires_at" in fields:
        _check_expiry(fields["expires_at"])
    token.save(update_fields=list(fields))
    return token


def token_delete(*, actor: Actor, token: ApiToken) -> None:
    """Revoked at once: the next request with it is refused."""
    policy.require(actor, "apitoken.delete", token)
    token.delete()


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
    except IntegrityError as error:
        raise _name_taken(user.username) from error
    return user


def user_update(*, actor: Actor, user: User, **fields: Unpack[UserFields]) -> User:
    policy.require(actor, "user.modify", user)
    try:
        with transaction.atomic():
            current = _locked(user)
            was_admin = current.is_admin
            names = _apply(current, fields)
            check_columns(current, names - {"password"})
            if was_admin and not current.is_admin:
                _check_not_last_admin(current)
            if names:
                current.save(update_fields=sorted(names))
            if "groups" in fields:
                _set_groups(current, fields["groups"])
    except IntegrityError as error:
        raise _name_taken(str(fields.get("username"))) from error
    return current


def user_delete(*, actor: Actor, user: User) -> None:
    policy.require(actor, "user.modify", user)
    with transaction.atomic():
        current = _locked(user)
        if current.pk == actor.pk:
            raise Conflict("You can't delete yourself. Ask another administrator.")
        if current.is_admin:
            _check_not_last_admin(current)
        owned = [f"{count} {noun}" for noun in _OWNED if (count := getattr(current, noun).count())]
        if owned:
            raise Conflict(
                f"User {current.username} still owns {', '.join(owned)}. "
                "Delete them first, or deactivate the user.",
                code="in_use",
            )
        current.delete()


def _apply(user: User, fields: Any) -> set[str]:
    """Set what is given; answers the columns that were touched."""
    check_text({name: value for name, value in fields.items() if name != "groups"})
    touched = set()
    for name in ("username", "email", "is_active"):
        if name in fields:
            setattr(user, name, fields[name])
            touched.add(name)
    if "is_admin" in fields:
        user.is_superuser = user.is_staff = fields["is_admin"]
        touched |= {"is_superuser", "is_staff"}
    if fields.get("password"):
        _set_password(user, fields["password"])
        touched.add("password")
    return touched


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(error.messages[0], fields={"password": error.messages}) from error
    user.set_password(password)


def _set_groups(user: User, names: Sequence[str]) -> None:
    groups = list(Group.objects.filter(name__in=names))
    if missing := sorted(set(names) - {group.name for group in groups}):
        raise Invalid.field("groups", f"There is no group named {missing[0]}.")
    user.groups.set(groups)


def _locked(user: User) -> User:
    """All admins are locked with it: two of them can't take each other's rights at once."""
    list(User.objects.select_for_update().filter(is_superuser=True).order_by("pk"))
    return row_lock(User.objects.all(), user.pk)


def _check_not_last_admin(user: User) -> None:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if not others.exists():
        raise Conflict(f"User {user.username} is the last administrator. Make another one first.")


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid.field("expires_at", "A token must expire in the future, or never (null).")


def _name_taken(username: str) -> Invalid:
    return Invalid.field("username", f"There is a user named {username} already.")
