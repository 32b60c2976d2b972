"""Start, stop, redeploy and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host, Tombstone
from tests.workspaces.scene import observe
from trailer.errors import Conflict, NotFound
from workspaces.models import Event, Workspace
from workspaces.selectors import workspace_get
from workspaces.services import (
    workspace_delete,
    workspace_redeploy,
    workspace_start,
    workspace_stop,
)
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene


def seen(workspace: Workspace, status: str, seq: int) -> Workspace:
    observe(workspace, status, seq=seq)
    return workspace_get(workspace.pk)


def kinds(workspace: Workspace) -> list[str]:
    return list(Event.objects.filter(workspace=workspace).values_list("kind", flat=True))


def test_stop_and_start_show_at_once_and_settle_with_the_agent(scene: Scene) -> None:
    workspace = seen(scene.create(), "running", 1)
    workspace = workspace_stop(actor=scene.owner, workspace=workspace)
    assert (workspace.desired_state, workspace.revision) == ("stopped", 2)
    assert workspace_status(workspace) == "stopping"
    workspace = seen(workspace, "stopped", 2)
    assert workspace_status(workspace) == "stopped"
    workspace = workspace_start(actor=scene.owner, workspace=workspace)
    assert workspace_status(workspace) == "deployment_pending"
    workspace = seen(workspace, "running", 3)
    assert workspace_status(workspace) == "running"
    assert kinds(workspace) == ["start_requested", "stop_requested", "created"]


def test_the_last_of_stop_and_start_wins(scene: Scene) -> None:
    workspace = seen(scene.create(), "running", 1)
    workspace = workspace_stop(actor=scene.owner, workspace=workspace)
    workspace = workspace_start(actor=scene.owner, workspace=workspace)
    assert workspace_status(workspace) == "deployment_pending"
    workspace = workspace_stop(actor=scene.owner, workspace=workspace)
    assert workspace_status(workspace) == "stopping"


@pytest.mark.parametrize(
    ("service", "state", "status"),
    [(workspace_start, "running", "running"), (workspace_stop, "stopped", "stopped")],
)
def test_asking_for_what_is_there_changes_nothing(
    scene: Scene, service: Any, state: str, status: str
) -> None:
    workspace = seen(scene.create(desired_state=state), status, 1)
    version = Host.objects.get(pk=scene.host.pk).desired_version
    again = service(actor=scene.owner, workspace=workspace)
    assert again.revision == 1
    assert kinds(workspace) == ["created"]
    assert Host.objects.get(pk=scene.host.pk).desired_version == version


@pytest.mark.parametrize(
    ("service", "wanted", "shown", "status"),
    [
        (workspace_start, "running", "error", "deployment_pending"),
        (workspace_start, "running", "stopped", "deployment_pending"),
        (workspace_stop, "stopped", "error", "stopping"),
        (workspace_stop, "stopped", "running", "stopping"),
    ],
)
def test_asking_again_for_what_did_not_come_true_tries_again(
    scene: Scene, service: Any, wanted: str, shown: str, status: str
) -> None:
    workspace = seen(scene.create(desired_state=wanted), shown, 1)
    workspace = service(actor=scene.owner, workspace=workspace)
    assert (workspace.revision, workspace.desired_state) == (2, wanted)
    assert workspace_status(workspace) == status
    assert len(kinds(workspace)) == 2


def test_a_redeploy_asks_for_a_new_container_and_starts_a_stopped_one(scene: Scene) -> None:
    workspace = seen(scene.create(desired_state="stopped"), "stopped", 1)
    workspace = workspace_redeploy(actor=scene.owner, workspace=workspace)
    assert (workspace.generation, workspace.desired_state) == (1, "running")
    assert workspace_status(workspace) == "deployment_pending"
    event = Event.objects.filter(workspace=workspace).first()
    assert event is not None
    assert event.kind == "redeploy_requested"
    assert [change["field"] for change in event.changes] == ["redeploy", "desired_state"]


def test_a_second_redeploy_counts_too(scene: Scene) -> None:
    workspace = seen(scene.create(), "running", 1)
    workspace_redeploy(actor=scene.owner, workspace=workspace)
    workspace = workspace_redeploy(actor=scene.owner, workspace=workspace)
    assert (workspace.generation, workspace.revision) == (2, 3)


def test_deleting_leaves_an_order_to_remove_the_container(scene: Scene) -> None:
    workspace = scene.create_full()
    version = Host.objects.get(pk=scene.host.pk).desired_version
    workspace_delete(actor=scene.owner, workspace=workspace)
    assert not Workspace.objects.exists()
    tombstone = Tombstone.objects.get()
    assert (tombstone.kind, tombstone.object_id) == ("workspace", workspace.pk)
    assert (tombstone.name, tombstone.host) == ("trailer-box", scene.host)
    assert Host.objects.get(pk=scene.host.pk).desired_version > version
    scene.volume.refresh_from_db()


def test_the_name_of_a_deleted_workspace_is_free_again(scene: Scene) -> None:
    workspace_delete(actor=scene.owner, workspace=scene.create_full())
    assert scene.create_full().revision == 1


ALL = (workspace_start, workspace_stop, workspace_redeploy, workspace_delete)


@pytest.mark.parametrize("service", ALL)
def test_a_stranger_finds_no_workspace(scene: Scene, service: Any) -> None:
    workspace = scene.create()
    with pytest.raises(NotFound):
        service(actor=scene.stranger, workspace=workspace)
    assert workspace_get(workspace.pk).revision == 1


@pytest.mark.parametrize("service", ALL)
def test_an_action_on_an_outdated_view_is_refused(scene: Scene, service: Any) -> None:
    workspace = scene.create()
    with pytest.raises(Conflict):
        service(actor=scene.owner, workspace=workspace, expected_revision=7)
    assert workspace_get(workspace.pk).revision == 1


def test_a_disabled_host_s_workspaces_offer_nothing_that_needs_it(scene: Scene) -> None:
    workspace = scene.create()
    observe(workspace, "error")
    path = f"/api/v1/workspaces/{workspace.pk}/"
    assert {"start", "redeploy"} <= set(scene.client().get(path).json()["allowed_actions"])
    Host.objects.update(enabled=False)
    assert scene.client().get(path).json()["allowed_actions"] == ["stop", "clone", "delete"]
