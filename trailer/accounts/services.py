"""What users may do to their tokens, sessions and own account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from django.db import transaction
from django.utils import timezone

from trailer import policy, secrets
from trailer.accounts.models import ApiToken, Session, TokenScope, User
from trailer.accounts.passwords import set_password
from trailer.audit.record import differences, record
from trailer.errors import Invalid, NotAllowed
from trailer.rows import row_lock
from trailer.validation import check_columns, check_one_line, check_text

if TYPE_CHECKING:
    from datetime import datetime

    from trailer.policy import Actor

_WIDTH: Final = {TokenScope.READ: 0, TokenScope.WRITE: 1, TokenScope.ADMIN: 2}


class TokenFields(TypedDict, total=False):
    name: str
    expires_at: datetime | None


def token_create(
    *,
    actor: Actor,
    name: str,
    scope: str = TokenScope.WRITE,
    expires_at: datetime | None = None,
    granted_by: ApiToken | None = None,
    is_sign_in: bool = False,
) -> tuple[ApiToken, str]:
    """The token and its key, which nobody can read again. `granted_by` is the caller's own."""
    policy.require(actor, "apitoken.create")
    check_text({"name": name})
    check_one_line(name, field="name", noun="The name")
    key = secrets.new_token("api")
    token = ApiToken(
        user=actor,
        name=name,
        scope=scope,
        expires_at=expires_at,
        is_sign_in=is_sign_in,
        digest=secrets.digest(key),
    )
    check_columns(token, ("name", "scope", "expires_at"))
    _check_expiry(expires_at)
    if granted_by is not None and _WIDTH[TokenScope(scope)] > _WIDTH[TokenScope(granted_by.scope)]:
        raise NotAllowed("A token can't make a token that may do more than itself.")
    with transaction.atomic():
        token.save(force_insert=True)
        if not is_sign_in:
            made = {"scope": str(scope), "expires_at": expires_at}
            record("apitoken.create", token, actor=actor, changes=differences({}, made))
    return token, key


def token_update(*, actor: Actor, token: ApiToken, **fields: Unpack[TokenFields]) -> ApiToken:
    policy.require(actor, "apitoken.modify", token)
    before = {name: getattr(token, name) for name in fields}
    for name, value in fields.items():
        setattr(token, name, value)
    check_text(fields)
    check_columns(token, fields)
    if "expires_at" in fields:
        _check_expiry(fields["expires_at"])
    if changes := differences(before, fields):
        with transaction.atomic():
            token.save(update_fields=list(fields))
            record("apitoken.update", token, actor=actor, changes=changes)
    return token


def token_delete(*, actor: Actor, token: ApiToken) -> None:
    """Revoked at once: the next request with it is refused."""
    policy.require(actor, "apitoken.delete", token)
    with transaction.atomic():
        record("apitoken.delete", token, actor=actor)
        token.delete()


def session_end(*, actor: Actor, session: Session) -> None:
    policy.require(actor, "session.delete", session)
    with transaction.atomic():
        record("session.delete", session, actor=actor)
        session.delete()


def sessions_end_others(
    *, actor: Actor, session_key: str | None = None, token: ApiToken | None = None
) -> tuple[int, int]:
    """Signs out everywhere but here; how many sessions and sign-in tokens that ended."""
    sessions = Session.objects.filter(user=actor.pk).exclude(session_key=session_key or "")
    tokens = ApiToken.objects.filter(user=actor.pk, is_sign_in=True)
    if token is not None:
        tokens = tokens.exclude(pk=token.pk)
    with transaction.atomic():
        ended = sessions.delete()[0], tokens.delete()[0]
        record("user.sign_out_everywhere", actor, actor=actor)
    return ended


def profile_update(*, actor: Actor, email: str) -> User:
    """The caller has checked the present password: a new password is sent to this address."""
    check_text({"email": email})
    with transaction.atomic():
        user = row_lock(User.objects.all(), actor.pk)
        changes = differences({"email": user.email}, {"email": email})
        user.email = email
        check_columns(user, ("email",))
        if changes:
            user.mail_is_vouched = False
            user.save(update_fields=["email", "mail_is_vouched"])
            record("user.update", user, actor=actor, changes=changes)
    return user


def password_change(*, actor: Actor, password: str, session_key: str | None = None) -> User:
    """The caller has checked the present password. Sessions that were signed in by it end."""
    with transaction.atomic():
        user = row_lock(User.objects.all(), actor.pk)
        set_password(user, password)
        user.save(update_fields=["password"])
        Session.objects.filter(user=user).exclude(session_key=session_key or "").delete()
        ApiToken.objects.filter(user=user, is_sign_in=True).delete()
        record("user.password", user, actor=actor)
    return user


def password_reset(*, user: User, password: str) -> User:
    """By the link of a mail, which proved who asks. Whoever was signed in must sign in again."""
    with transaction.atomic():
        current = row_lock(User.objects.all(), user.pk)
        set_password(current, password)
        current.mail_is_vouched = True
        current.save(update_fields=["password", "mail_is_vouched"])
        Session.objects.filter(user=current).delete()
        ApiToken.objects.filter(user=current, is_sign_in=True).delete()
        record("user.password_reset", current, actor=current)
    return current


def expired_prune() -> int:
    """Sign-in tokens and sessions that nobody can use any more; for the background job."""
    now = timezone.now()
    tokens = ApiToken.objects.filter(is_sign_in=True, expires_at__lte=now)
    return tokens.delete()[0] + Session.objects.filter(expire_date__lte=now).delete()[0]


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid.field("expires_at", "A token must expire in the future, or never (null).")
