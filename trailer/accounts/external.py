"""People that an identity provider vouches for: their account here, their groups, their rights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group
from django.db import transaction

from trailer.access.reliance import people_judged_again
from trailer.accounts.models import ExternalIdentity, User
from trailer.audit.record import differences, record

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNFIT: Final = re.compile(r"[^\w.@+-]+")
_NAME_LIMIT: Final = 140


@dataclass(frozen=True)
class GroupMapping:
    """From the provider's groups to ours; `admin_group` is the provider's name of admins."""

    groups: Mapping[str, str]
    groups_claim: str = "groups"
    admin_group: str = ""
    links_by_mail: bool = False


def external_sign_in(
    *, issuer: str, claims: Mapping[str, Any], mapping: GroupMapping
) -> User | None:
    """The account of whoever the verified claims are about; made at the first sign-in.

    None for an account that was deactivated here.
    """
    with transaction.atomic():
        user = _known(issuer, claims) or _linked(issuer, claims, mapping)
        if user is None:
            user = _created(issuer, claims)
        if not user.is_active:
            return None
        _follow_groups(user, _groups_of(claims, mapping), mapping)
        record("user.login", user, actor=user)
    return user


def _known(issuer: str, claims: Mapping[str, Any]) -> User | None:
    found = ExternalIdentity.objects.filter(issuer=issuer, subject=str(claims["sub"]))
    row = found.select_related("user").first()
    return row.user if row else None


def _linked(issuer: str, claims: Mapping[str, Any], mapping: GroupMapping) -> User | None:
    """An account with the same mail, if the operator trusts the provider's word for it and the
    address is not merely what its user typed: else anybody could be joined to an account that
    somebody else signs in to."""
    mail = claims.get("email")
    if not (mapping.links_by_mail and mail and claims.get("email_verified") is True):
        return None
    users = list(User.objects.filter(email__iexact=mail)[:2])
    if len(users) != 1 or not users[0].mail_is_vouched:
        return None
    ExternalIdentity.objects.create(user=users[0], issuer=issuer, subject=str(claims["sub"]))
    return users[0]


def _created(issuer: str, claims: Mapping[str, Any]) -> User:
    user = User(username=_free_name(claims), email=str(claims.get("email") or "")[:254])
    user.set_unusable_password()
    user.save(force_insert=True)
    ExternalIdentity.objects.create(user=user, issuer=issuer, subject=str(claims["sub"]))
    record("user.create", user, actor=user, changes=differences({}, {"email": user.email}))
    return user


def _free_name(claims: Mapping[str, Any]) -> str:
    """A name that is taken stays with its owner: the provider's user gets a number behind it."""
    wish = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
    name = _UNFIT.sub("-", wish)[:_NAME_LIMIT].strip("-") or "user"
    taken = set(User.objects.filter(username__startswith=name).values_list("username", flat=True))
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _groups_of(claims: Mapping[str, Any], mapping: GroupMapping) -> set[str]:
    given = claims.get(mapping.groups_claim)
    return {str(name) for name in given} if isinstance(given, list) else set()


def _follow_groups(user: User, given: set[str], mapping: GroupMapping) -> None:
    """Only groups that the mapping names are touched; others are given here and stay."""
    ours = set(mapping.groups.values())
    wanted = {mapping.groups[name] for name in given if name in mapping.groups}
    before = _rights(user)
    for name in sorted(ours):
        group, _ = Group.objects.get_or_create(name=name)
        (user.groups.add if name in wanted else user.groups.remove)(group)
    if mapping.admin_group:
        _follow_admin(user, wanted=mapping.admin_group in given)
    if changes := differences(before, _rights(user)):
        record("user.update", user, actor=user, changes=changes)
        people_judged_again([user.pk])


def _follow_admin(user: User, *, wanted: bool) -> None:
    """The last administrator stays one, whatever the provider says."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if wanted != user.is_superuser and (wanted or others.exists()):
        user.is_superuser = user.is_staff = wanted
        user.save(update_fields=["is_superuser", "is_staff"])


def _rights(user: User) -> dict[str, Any]:
    return {
        "groups": sorted(user.groups.values_list("name", flat=True)),
        "is_admin": user.is_superuser,
    }
