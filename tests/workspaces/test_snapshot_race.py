"""Snapshot requests at once: one wins, the others get a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from images.models import Build, Image
from tests.workspaces.scene import make_scene, observe
from tests.workspaces.test_concurrency import at_once
from trailer.errors import Conflict, NotFound
from workspaces.models import Event, Workspace
from workspaces.services import workspace_delete, workspace_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_several_snapshot_requests_one_wins() -> None:
    scene = make_scene()
    workspace = scene.create()
    observe(workspace, "running")

    def take(number: int) -> Callable[[], object]:
        data = {"name": f"saved-{number}"}
        return lambda: workspace_snapshot(actor=scene.owner, workspace=workspace, data=data)

    results = at_once(*(take(number) for number in range(4)))
    refusals = [result for result in results if isinstance(result, Conflict)]
    assert [refusal.code for refusal in refusals] == ["under_way"] * 3
    made = Image.objects.get(kind="snapshot")
    assert Build.objects.filter(image=made).count() == 1
    assert Event.objects.filter(kind="snapshot_requested").count() == 1


def test_a_snapshot_and_a_deletion_at_once_leave_nothing_waiting() -> None:
    """Whoever comes second sees what the first did."""
    scene = make_scene()
    workspace = scene.create()
    observe(workspace, "running")

    def take() -> object:
        try:
            return workspace_snapshot(actor=scene.owner, workspace=workspace, data={})
        except NotFound as gone:
            return gone

    at_once(lambda: workspace_delete(actor=scene.owner, workspace=workspace), take)
    assert not Workspace.objects.exists()
    waiting = Build.objects.filter(image__kind="snapshot", cancel_requested=False)
    assert list(waiting) == []
