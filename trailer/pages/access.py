"""What the access tab of an object shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.utils import timezone

from trailer import policy
from trailer.access.grants import grants_of
from trailer.access.models import Role

if TYPE_CHECKING:
    from trailer.accounts.models import User

ROLES = (
    ("viewer", "Viewer", "sees it and reads its logs"),
    ("editor", "Editor", "also changes, starts, stops and snapshots it, and opens terminals"),
    ("manager", "Manager", "also shares and deletes it"),
)


def access_context(user: User, obj: Any) -> dict[str, Any]:
    """Needs `obj.owner` loaded. For whoever may share the object."""
    kind = obj._meta.model_name
    rows = [
        {
            "subject": "user" if grant.user else "group",
            "name": grant.user.username if grant.user else str(grant.group),
            "role": Role(grant.role).label,
            "expires_at": grant.expires_at,
            "is_over": grant.expires_at is not None and grant.expires_at <= timezone.now(),
            "granted_by": grant.granted_by,
            "created_at": grant.created_at,
        }
        for grant in grants_of(actor=user, obj=obj)
    ]
    return {
        "grants": rows,
        "roles": ROLES,
        "groups": Group.objects.order_by("name"),
        "may_transfer": policy.allows(user, f"{kind}.transfer", obj),
    }
