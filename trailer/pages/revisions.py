"""The revisions of a workspace, each with what it changed and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trailer.pages.page import list_page
from workspaces.selectors import workspace_revisions

if TYPE_CHECKING:
    from datetime import datetime

    from django.core.paginator import Page
    from django.http import HttpRequest

    from trailer.accounts.models import User
    from workspaces.models import Revision, Workspace


@dataclass(frozen=True)
class Step:
    """`changes` are against the revision before it, secrets masked. `is_now`: these are the
    fields of today, whatever started and stopped since."""

    revision: int
    created_at: datetime
    actor: User | None
    cause: str
    changes: list[dict[str, Any]]
    is_now: bool


def revisions_page(workspace: Workspace, request: HttpRequest) -> Page[Step]:
    """A page of `Step`; what a revision changed stands in the event that was written with it."""
    rows = workspace_revisions(workspace)
    now = rows.values_list("revision", flat=True).first()
    page = list_page(rows, request)
    numbers = [row.revision for row in page.object_list]
    asked = workspace.events.filter(revision__in=numbers, report_epoch=None).order_by(
        "received_at"
    )
    events = {event.revision: event for event in asked}
    steps = cast("Page[Step]", page)
    steps.object_list = [
        _step(row, events.get(row.revision), is_now=row.revision == now)
        for row in page.object_list
    ]
    return steps


def _step(row: Revision, event: Any, *, is_now: bool) -> Step:
    return Step(
        revision=row.revision,
        created_at=row.created_at,
        actor=row.actor,
        cause=event.cause if event else "",
        changes=event.changes if event else [],
        is_now=is_now,
    )
