"""Finding the users and groups that a list of entries names, in two queries however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Q

from trailer.accounts.models import User
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Subject = User | Group


def subjects_of(entries: Sequence[Mapping[str, Any]], *, field: str) -> list[Subject]:
    """One for each entry, which holds either `user` (an id or a username) or `group` (a name)."""
    users = _users({str(entry["user"]) for entry in entries if entry.get("user")})
    names = {str(entry["group"]) for entry in entries if entry.get("group")}
    groups = {group.name: group for group in Group.objects.filter(name__in=names)}
    found: list[Subject] = []
    seen: set[tuple[str, Any]] = set()
    for n, entry in enumerate(entries):
        subject = _subject(entry, users, groups, path=f"{field}.{n}")
        key = (type(subject).__name__, subject.pk)
        if key in seen:
            raise Invalid.field(
                f"{field}.{n}.{_word(subject)}", f"{subject} is in the list twice."
            )
        seen.add(key)
        found.append(subject)
    return found


def user_named(text: str, *, field: str) -> User:
    user = _users({text}).get(text)
    if user is None:
        raise Invalid.field(field, f"There is no user {text}. Check the spelling.")
    return user


def _subject(
    entry: Mapping[str, Any], users: Mapping[str, User], groups: Mapping[str, Group], *, path: str
) -> Subject:
    user, group = entry.get("user"), entry.get("group")
    if bool(user) == bool(group):
        raise Invalid.field(f"{path}.user", "Name either a user or a group.")
    if user:
        if user not in users:
            raise Invalid.field(f"{path}.user", f"There is no user {user}. Check the spelling.")
        return users[user]
    if group not in groups:
        raise Invalid.field(f"{path}.group", f"There is no group {group}. Check the spelling.")
    return groups[str(group)]


def _users(texts: set[str]) -> dict[str, User]:
    """By id or username; a username that looks like an id is found as well."""
    ids = {number: text for text in texts if (number := _uuid(text)) is not None}
    rows = list(User.objects.filter(Q(pk__in=ids) | Q(username__in=texts))) if texts else []
    by_id = {ids[row.pk]: row for row in rows if row.pk in ids}
    return by_id | {row.username: row for row in rows if row.username in texts - set(by_id)}


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _word(subject: Subject) -> str:
    return "user" if isinstance(subject, User) else "group"
