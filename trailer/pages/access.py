"""What the access part of an object's page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import timezone

from trailer import policy
from trailer.access.capabilities import capabilities_of
from trailer.access.grants import NARROWED, grants_of
from trailer.access.models import Capability, ObjectKind, Right, Role
from workspaces.models import Workspace
from workspaces.services.users import users_of

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

# What each role may do with an object of each kind; docs/access.md has the same table.
ROLES = {
    "workspace": (
        ("viewer", "Viewer", "sees it and reads its logs"),
        ("editor", "Editor", "also changes, starts, stops and snapshots it, and opens terminals"),
        ("manager", "Manager", "also shares and deletes it"),
    ),
    "stack": (
        ("viewer", "Viewer", "sees it, its services and their logs"),
        (
            "editor",
            "Editor",
            "also deploys, rolls back and changes variables, and opens terminals",
        ),
        ("manager", "Manager", "also changes where it comes from, shares and deletes it"),
    ),
    "image": (
        ("viewer", "Viewer", "sees it and starts workspaces from it"),
        ("editor", "Editor", "also changes, builds and cancels it"),
        ("manager", "Manager", "also shares and deletes it"),
    ),
    "volume": (
        ("viewer", "Viewer", "mounts it read-only"),
        ("editor", "Editor", "mounts it to write"),
        ("manager", "Manager", "also shares and deletes it"),
    ),
    "network": (
        ("viewer", "Viewer", "attaches workspaces to it"),
        ("editor", "Editor", "the same as a viewer"),
        ("manager", "Manager", "also shares and deletes it"),
    ),
}

# What else the new owner gets, or does not.
_TRANSFER_HINTS = {
    "stack": "Its services, images, volumes, networks and git credential go along.",
    "image": "A registry credential that the new owner may not use is taken off it.",
}


def may_share(user: User, obj: Any) -> bool:
    return policy.allows(user, f"{obj._meta.model_name}.share", obj)


def access_context(user: User, obj: Any) -> dict[str, Any]:
    """Needs `obj.owner` loaded. For whoever may share the object."""
    kind = obj._meta.model_name
    rows = [
        {
            "subject": "user" if grant.user else "group",
            "name": grant.user.username if grant.user else str(grant.group),
            "role": Role(grant.role).label,
            "without": [right.value for right in Right if not getattr(grant, right.value)],
            "expires_at": grant.expires_at,
            "is_over": grant.expires_at is not None and grant.expires_at <= timezone.now(),
            "granted_by": grant.granted_by,
            "created_at": grant.created_at,
        }
        for grant in grants_of(actor=user, obj=obj)
    ]
    return {
        "shared": obj,
        "collection": f"{kind}s",
        "access_address": reverse(kind, args=[obj.pk]),
        "grants": rows,
        "roles": ROLES[kind],
        "rights": _rights(kind),
        "groups": Group.objects.order_by("name"),
        "may_transfer": policy.allows(user, f"{kind}.transfer", obj),
        "transfer_hint": _TRANSFER_HINTS.get(kind, ""),
        "shared_kind": kind,
        "object_users": _object_users(user, obj),
    }


def _object_users(user: User, obj: Any) -> list[dict[str, Any]]:
    """By name, also those that the user may not see: they use what the user answers for."""
    if f"{obj._meta.model_name}.evict" not in policy.RULES:
        return []
    rows = users_of(obj)
    seen = Workspace.objects.visible_to(user).filter(pk__in=[row.workspace.pk for row in rows])
    visible = set(seen.values_list("pk", flat=True))
    return [vars(row) | {"is_visible": row.workspace.pk in visible} for row in rows]


def _rights(kind: str) -> list[tuple[str, str, bool]]:
    """What a grant may leave out, in words; the last says that on this kind it may not."""
    if kind not in NARROWED:
        return []
    fixed = {Right.INSPECT} if kind == ObjectKind.STACK else set()
    return [(right.value, right.label, right in fixed) for right in Right]


def capabilities_context(user: User, host: Host) -> dict[str, Any]:
    """Who may do what on a host; for administrators."""
    everybody = policy.OPEN_CAPABILITIES if settings.TRAILER_OPEN_HOSTS else frozenset()
    capabilities = [
        {"value": one.value, "label": one.label, "is_open": one in everybody} for one in Capability
    ]
    holders = [
        {
            "subject": "user" if entry["user"] else "group",
            "name": entry["username"] or entry["group"],
            "capabilities": entry["capabilities"],
        }
        for entry in capabilities_of(actor=user, host=host)
    ]
    return {
        "holders": holders,
        "capabilities": capabilities,
        "is_open": bool(everybody),
        "groups": Group.objects.order_by("name"),
    }
