"""The newest entries of a workspace's story for the live socket, as the API answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workspaces.api.events import EventSerializer, event_context
from workspaces.models import Workspace
from workspaces.story.read import newest_of

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from trailer.policy import Actor

_SENT: Final = 20


def events_states(actor: Actor, ids: list[UUID], now: datetime) -> list[dict[str, Any]]:
    """One frame per workspace that the actor may see."""
    del now
    rows = Workspace.objects.visible_to(actor).with_role(actor).filter(pk__in=ids)
    return [_frame(actor, workspace) for workspace in rows]


def _frame(actor: Actor, workspace: Workspace) -> dict[str, Any]:
    told = EventSerializer(
        newest_of(workspace, _SENT), many=True, context=event_context(actor, workspace)
    )
    return {"resource": f"events:{workspace.pk}", "events": told.data}
