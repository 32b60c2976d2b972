"""Old events go, but for those that the next start needs; and what reading the story costs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from tests.workspaces.scene import URL
from workspaces.models import Event
from workspaces.selectors import workspace_revisions
from workspaces.services import workspace_start, workspace_stop, workspace_update
from workspaces.story.prune import events_prune

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene
    from workspaces.models import Workspace


def event(workspace: Workspace, kind: str, *, days: int = 0, **fields: Any) -> Event:
    row = Event.objects.create(
        workspace=workspace, at=timezone.now(), kind=kind, cause=kind, **fields
    )
    received = timezone.now() - timedelta(days=days)
    Event.objects.filter(pk=row.pk).update(received_at=received)
    return row


def kinds(workspace: Workspace) -> list[str]:
    rows = workspace.events.exclude(kind="created").order_by("received_at")
    return list(rows.values_list("kind", flat=True))


def test_what_is_older_than_the_limit_goes(scene: Scene) -> None:
    workspace = scene.create()
    event(workspace, "changed", days=500, revision=1)
    event(workspace, "crashed", days=400)
    event(workspace, "replace", days=300, revision=2, report_epoch=1, report_seq=1)
    assert events_prune(timezone.now()) == 2
    assert kinds(workspace) == ["replace"]


def test_what_a_stopped_workspace_was_changed_by_since_it_ran_stays(scene: Scene) -> None:
    workspace = scene.create()
    event(workspace, "start", days=500, revision=3, report_epoch=1, report_seq=1)
    event(workspace, "changed", days=450, revision=4)
    assert events_prune(timezone.now()) == 0
    assert kinds(workspace) == ["start", "changed"]


def test_of_a_crowded_workspace_only_the_newest_stay(scene: Scene, settings: Any) -> None:
    settings.TRAILER_EVENTS_KEPT = 5
    workspace = scene.create()
    for days in range(9, 0, -1):
        event(workspace, "heal", days=days)
    events_prune(timezone.now())
    assert workspace.events.count() == 5


def test_reading_the_story_costs_the_same_for_few_events_and_for_many(
    scene: Scene, django_assert_max_num_queries: Any
) -> None:
    workspace = scene.create()
    client, address = scene.client(), f"{URL}{workspace.pk}/events/"
    client.get(address)
    for number in range(200):
        event(workspace, "heal", report_epoch=1, report_seq=number)
    with django_assert_max_num_queries(12):
        assert client.get(address).json()["count"] == 201


def test_starts_and_stops_are_no_revisions_of_the_list_but_keep_their_rows(scene: Scene) -> None:
    workspace = scene.create()
    workspace = workspace_stop(actor=scene.owner, workspace=workspace)
    workspace = workspace_update(actor=scene.owner, workspace=workspace, data={"cpus": 1})
    workspace = workspace_start(actor=scene.owner, workspace=workspace)
    assert workspace.revisions.count() == 4
    assert [row.revision for row in workspace_revisions(workspace)] == [3, 1]
    answer = scene.client().get(f"{URL}{workspace.pk}/revisions/").json()
    assert answer["count"] == 2
