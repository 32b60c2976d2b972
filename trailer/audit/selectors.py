"""Reading the audit; API and page filter by the same rules."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q


def of_actor(text: str) -> Q:
    """By id or name; a name that nobody has any more is found too."""
    try:
        return Q(actor_id=UUID(text)) | Q(actor_name=text)
    except ValueError:
        return Q(actor_name=text)
