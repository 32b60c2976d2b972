"""Entries of the story as pages draw them: sentence, outcome and details, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from django.core.paginator import Paginator

from trailer import policy
from trailer.pages.page import ROWS_PER_PAGE, query_without_part
from workspaces.story.fields import label_of, value_words
from workspaces.story.join import explaining
from workspaces.story.read import Filter, newest_of, newest_of_all, workspace_story
from workspaces.story.rows import ASKED, CRASHED, DONE, FAILED, OUTCOMES, Entry
from workspaces.story.sentences import summary_of, who

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from trailer.accounts.models import User
    from workspaces.models import Workspace

_OUTCOMES: Final = {ASKED: "under way", DONE: "done", FAILED: "failed"}
_KINDS: Final = {"heal": "drift"}


@dataclass(frozen=True)
class Change:
    label: str
    old: str
    new: str


@dataclass(frozen=True)
class Line:
    """One entry. `tone` colours its outcome."""

    entry: Entry
    summary: str
    by: str
    outcome: str
    tone: str
    changes: tuple[Change, ...] = ()
    health_output: str = ""
    last_lines: str = ""
    is_why: bool = False
    workspace: Workspace | None = None


@dataclass(frozen=True)
class Reader:
    """What of a story somebody may see."""

    inspects: bool
    reads_logs: bool

    @classmethod
    def of(cls, user: User, workspace: Workspace) -> Reader:
        return cls(
            inspects=policy.allows(user, "workspace.inspect", workspace),
            reads_logs=policy.allows(user, "workspace.logs", workspace),
        )


def story_page(workspace: Workspace, user: User, request: HttpRequest) -> dict[str, Any]:
    """The events tab: one page of lines, the filters, and which entry explains the status."""
    given = request.GET
    whole = workspace_story(workspace)
    wanted = Filter(kind=given.get("kind", ""), outcome=given.get("outcome", ""))
    reason = explaining(whole)
    entries = [entry for entry in whole if wanted.takes(entry)]
    page = cast("Page[Line]", Paginator(entries, ROWS_PER_PAGE).get_page(given.get("page")))
    reader = Reader.of(user, workspace)
    shown = cast("Iterable[Entry]", page.object_list)
    page.object_list = [_line(entry, reader, is_why=entry is reason) for entry in shown]
    return {
        "events": page,
        "event_kinds": [(kind, kind_words(kind)) for kind in sorted({e.kind for e in whole})],
        "event_outcomes": [(outcome, _OUTCOMES[outcome]) for outcome in OUTCOMES],
        "event_filter": wanted,
        "event_query": query_without_part(given, "page"),
    }


def newest_lines(workspace: Workspace, user: User, count: int) -> list[Line]:
    reader = Reader.of(user, workspace)
    return [_line(entry, reader) for entry in newest_of(workspace, count)]


def newest_lines_of_all(workspaces: QuerySet[Workspace], user: User, count: int) -> list[Line]:
    return [
        _line(entry, Reader.of(user, workspace), workspace=workspace)
        for workspace, entry in newest_of_all(workspaces, count)
    ]


def kind_words(kind: str) -> str:
    return _KINDS.get(kind, kind.replace("_", " ")).capitalize()


def _line(
    entry: Entry,
    reader: Reader,
    *,
    is_why: bool = False,
    workspace: Workspace | None = None,
) -> Line:
    row = entry.row
    changes = [
        Change(
            label_of(str(change.get("field", ""))),
            value_words(str(change.get("field", "")), change.get("from")),
            value_words(str(change.get("field", "")), change.get("to")),
        )
        for change in row.changes
        if change.get("field") not in ("desired_state", "redeploy")
    ]
    crashed = entry.kind == CRASHED
    return Line(
        entry=entry,
        summary=summary_of(entry, inspects=reader.inspects),
        by=who(entry.by),
        outcome="crashed" if crashed else _OUTCOMES[entry.outcome],
        tone=FAILED if crashed else entry.outcome,
        changes=tuple(changes) if reader.inspects else (),
        health_output=row.health_output if reader.reads_logs else "",
        last_lines=row.last_lines if reader.reads_logs else "",
        is_why=is_why,
        workspace=workspace,
    )
