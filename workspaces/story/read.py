"""Reads the story of workspaces: one query for their rows, whatever is shown of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from images.choices import ImageKind
from images.models import Image
from workspaces.models import Event
from workspaces.stacks.models import Stack
from workspaces.story.join import explaining, story_of
from workspaces.story.rows import SNAPSHOT, Entry, Row, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from workspaces.models import Workspace

_COLUMNS: Final = (
    *("id", "at", "received_at", "kind", "cause", "changes", "actor__username", "actor_name"),
    *("revision", "cycle", "report_epoch", "count", "last_at", "exit"),
    *("health_output", "last_lines"),
)
# An entry of the newest ones may have its rows a little further down.
_ROWS_PER_ENTRY: Final = 6


@dataclass(frozen=True)
class Filter:
    """What an entry must be to be shown; empty means anything."""

    kind: str = ""
    outcome: str = ""
    by: str = ""

    def takes(self, entry: Entry) -> bool:
        return (
            self.kind in ("", entry.kind)
            and self.outcome in ("", entry.outcome)
            and self.by in ("", entry.by.type)
        )


EVERYTHING: Final = Filter()


def workspace_story(workspace: Workspace, wanted: Filter = EVERYTHING) -> list[Entry]:
    """Every entry that is kept, newest first."""
    rows = _rows(Event.objects.filter(workspace=workspace), settings.TRAILER_EVENTS_KEPT)
    entries = story_of([row for _, row in rows], _subject(workspace, rows))
    return [entry for entry in entries if wanted.takes(entry)]


def newest_of(workspace: Workspace, count: int) -> list[Entry]:
    rows = _rows(Event.objects.filter(workspace=workspace), count * _ROWS_PER_ENTRY)
    return story_of([row for _, row in rows], _subject(workspace, rows))[:count]


def why(workspace: Workspace) -> Entry | None:
    """The newest entry that says why the workspace is as it is."""
    return explaining(workspace_story(workspace))


def newest_of_all(workspaces: QuerySet[Workspace], count: int) -> list[tuple[Workspace, Entry]]:
    """The newest entries of several workspaces, with the workspace of each."""
    found = Event.objects.filter(workspace__in=workspaces.order_by())
    by_workspace: dict[UUID, list[Row]] = defaultdict(list)
    for workspace_id, row in _rows(found, count * _ROWS_PER_ENTRY):
        by_workspace[workspace_id].append(row)
    known = workspaces.in_bulk(by_workspace)
    stacks = _stack_names(known.values())
    told = [
        (workspace, entry)
        for workspace in known.values()
        for entry in story_of(
            by_workspace[workspace.pk],
            subject_of(workspace, stack=stacks.get(workspace.stack, "")),
        )
    ]
    return sorted(told, key=lambda pair: pair[1].row.received_at, reverse=True)[:count]


def subject_of(
    workspace: Workspace, *, stack: str = "", snapshots: tuple[tuple[datetime, str], ...] = ()
) -> Subject:
    return Subject(
        revision=workspace.revision,
        observed_revision=workspace.observed_revision,
        status=workspace.observed_status,
        message=workspace.message,
        stack=stack,
        snapshots=snapshots,
    )


def _subject(workspace: Workspace, rows: Iterable[tuple[UUID, Row]]) -> Subject:
    """Looks up only what the rows need."""
    stack = _stack_names([workspace]).get(workspace.stack, "")
    snapshots: tuple[Any, ...] = ()
    if any(row.kind == SNAPSHOT for _, row in rows):
        # nosemgrep: unscoped-read (how the snapshots of a visible one ended)
        images = Image.objects.filter(kind=ImageKind.SNAPSHOT, source_workspace=workspace.pk)
        snapshots = tuple(images.order_by("created_at").values_list("created_at", "status"))
    return subject_of(workspace, stack=stack, snapshots=snapshots)


def _stack_names(workspaces: Iterable[Workspace]) -> dict[UUID | None, str]:
    ids = {workspace.stack for workspace in workspaces if workspace.stack}
    # nosemgrep: unscoped-read (the names of visible ones' stacks)
    return dict(Stack.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}


def _rows(events: QuerySet[Event], most: int) -> list[tuple[UUID, Row]]:
    """Oldest first, each with its workspace."""
    newest = events.values_list("workspace_id", *_COLUMNS)[:most]
    return [(values[0], _row(values[1:])) for values in reversed(newest)]


def _row(values: tuple[Any, ...]) -> Row:
    found = dict(zip(_COLUMNS, values, strict=True))
    return Row(
        user=found.pop("actor__username") or "",
        name=found.pop("actor_name"),
        reported=found.pop("report_epoch") is not None,
        **found,
    )
