"""Snapshots over REST: who may, when, what is made of them, and how a workspace returns to one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agent.protocol import naming
from agent.protocol.report import BuildStatus
from hosts.models import Host
from images.models import Image
from images.services.observed import build_observed
from tests.factories import api_client, make_build, make_image, make_silent_host
from tests.workspaces.scene import URL, Scene, observe
from workspaces.control.compile import host_state
from workspaces.models import Event, Revision, Workspace
from workspaces.selectors import workspace_get
from workspaces.services import workspace_create, workspace_delete, workspace_update
from workspaces.status import workspace_badge, workspace_status

if TYPE_CHECKING:
    from agent.protocol.state import DesiredImage
    from trailer.accounts.models import User


@pytest.fixture
def running(scene: Scene) -> Workspace:
    workspace = scene.create()
    observe(workspace, "running")
    return workspace_get(workspace.pk)


def snapshot(actor: User, workspace: Workspace, body: Any = None, **headers: str) -> Any:
    url = f"{URL}{workspace.pk}/snapshot/"
    return api_client(actor).post(url, {} if body is None else body, headers=headers)


def taken(scene: Scene, workspace: Workspace, name: str = "saved") -> Image:
    assert snapshot(scene.owner, workspace, {"name": name}).status_code == 202
    return Image.objects.get(name=name)


def told(image: Image, status: str, **fields: Any) -> None:
    """What the agent reports about the image's newest build."""
    build = image.builds.first()
    assert build is not None
    item = BuildStatus(
        seq=99, image_id=str(image.pk), build_id=str(build.pk), status=status, **fields
    )
    assert build_observed(image.host, item, epoch=1)
    image.refresh_from_db()


def wanted(image: Image) -> DesiredImage:
    state = host_state(Host.objects.get(pk=image.host_id))
    return next(item for item in state.images if item.id == str(image.pk))


def test_a_snapshot_becomes_an_image_that_its_agent_is_asked_for(
    scene: Scene, running: Workspace
) -> None:
    version = Host.objects.get(pk=scene.host.pk).desired_version
    answer = snapshot(scene.owner, running, {"name": "saved"})
    assert answer.status_code == 202
    image = Image.objects.get(name="saved")
    assert answer.json()["snapshot"] == str(image.pk)
    assert answer.json()["id"] == str(running.pk)
    assert (image.kind, image.owner, image.host) == ("snapshot", scene.owner, scene.host)
    assert (image.status, image.enabled) == ("pending", True)
    build = image.builds.get()
    assert (build.trigger, build.actor) == ("requested", scene.owner)
    desired = wanted(image)
    assert (desired.kind, desired.source_workspace_id) == ("snapshot", str(running.pk))
    assert desired.ref == naming.build_ref(str(image.pk))
    assert desired.build is not None
    assert (desired.build.id, desired.build.done) == (str(build.pk), False)
    assert Host.objects.get(pk=scene.host.pk).desired_version > version


def test_the_image_shows_what_it_was_taken_of(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    body = scene.client().get(f"/api/v1/images/{image.pk}/").json()
    assert body["source_workspace"] == str(running.pk)
    assert body["source_image"] == str(scene.image.pk)


def test_the_ledger_says_who_asked_and_the_workspace_keeps_its_revision(
    scene: Scene, running: Workspace
) -> None:
    taken(scene, running)
    event = Event.objects.filter(workspace=running).first()
    assert event is not None
    assert (event.kind, event.cause) == ("snapshot_requested", "Snapshot saved requested.")
    assert (event.actor, event.revision) == (scene.owner, 1)
    assert workspace_get(running.pk).revision == Revision.objects.count() == 1


def test_the_status_stays_what_the_agent_says(scene: Scene, running: Workspace) -> None:
    assert "snapshot" in workspace_badge(running).actions
    taken(scene, running)
    assert workspace_status(workspace_get(running.pk)) == "running"
    observe(running, "snapshotting", seq=2)
    shown = workspace_get(running.pk)
    assert workspace_status(shown) == "snapshotting"
    assert "snapshot" not in workspace_badge(shown).actions
    observe(running, "running", seq=3)
    assert workspace_status(workspace_get(running.pk)) == "running"


@pytest.mark.parametrize("body", [{}, {"name": None}, {"name": ""}])
def test_without_a_name_it_is_called_after_the_workspace_and_the_time(
    scene: Scene, running: Workspace, body: dict[str, Any]
) -> None:
    image = Image.objects.get(pk=snapshot(scene.owner, running, body).json()["snapshot"])
    assert re.fullmatch(r"box-\d{8}-\d{6}", image.name)


def test_two_nameless_snapshots_in_one_second_have_two_names(
    scene: Scene, running: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = timezone.now()
    monkeypatch.setattr("images.services.snapshots.timezone.now", lambda: moment)
    for _ in range(3):
        image = Image.objects.get(pk=snapshot(scene.owner, running).json()["snapshot"])
        told(image, "finished", engine_id="sha256:1")
    names = Image.objects.filter(kind="snapshot").order_by("name").values_list("name")
    first = names[0][0]
    assert [name for (name,) in names] == [first, f"{first}-2", f"{first}-3"]


@pytest.mark.parametrize(
    "body", [{"name": "base"}, {"name": "x" * 129}, {"name": " a"}, {"name": 5}, {"name": False}]
)
def test_a_bad_name_is_refused(scene: Scene, running: Workspace, body: dict[str, Any]) -> None:
    answer = snapshot(scene.owner, running, body)
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["name"]
    assert not Image.objects.filter(kind="snapshot").exists()


def test_an_unknown_field_is_named(scene: Scene, running: Workspace) -> None:
    answer = snapshot(scene.owner, running, {"nmae": "x"})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["nmae"])


def test_a_stranger_finds_no_workspace_and_an_admin_may(scene: Scene, running: Workspace) -> None:
    assert snapshot(scene.stranger, running).status_code == 404
    assert snapshot(scene.admin, running).status_code == 202
    assert Image.objects.get(kind="snapshot").owner == scene.owner


def test_an_outdated_revision_is_refused(scene: Scene, running: Workspace) -> None:
    answer = snapshot(scene.owner, running, **{"If-Match": "7"})
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")


@pytest.mark.parametrize("status", ["stopped", "starting", "stopping", "deploying", "error"])
def test_only_a_running_workspace_is_snapshotted(scene: Scene, status: str) -> None:
    workspace = scene.create()
    observe(workspace, status)
    answer = snapshot(scene.owner, workspace)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_running")
    assert "box is not running" in answer.json()["message"]


def test_a_workspace_that_is_about_to_change_is_not_snapshotted(
    scene: Scene, running: Workspace
) -> None:
    workspace_update(actor=scene.owner, workspace=running, data={"cpus": 1})
    assert snapshot(scene.owner, running).json()["code"] == "not_running"


def test_a_silent_host_takes_no_snapshot(scene: Scene, running: Workspace) -> None:
    silent = make_silent_host().last_heartbeat
    Host.objects.filter(pk=scene.host.pk).update(last_heartbeat=silent)
    answer = snapshot(scene.owner, running)
    assert (answer.status_code, answer.json()["code"]) == (409, "host_silent")
    assert "The host is silent" in answer.json()["message"]


def test_a_disabled_host_takes_no_snapshot(scene: Scene, running: Workspace) -> None:
    Host.objects.filter(pk=scene.host.pk).update(enabled=False)
    assert snapshot(scene.owner, running).status_code == 409


def test_a_second_one_waits_until_the_first_is_over(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    for status in ("running", "snapshotting"):
        observe(running, status, seq=5 if status == "running" else 6)
        answer = snapshot(scene.owner, running)
        assert (answer.status_code, answer.json()["code"]) == (409, "under_way")
        assert "saved" in answer.json()["message"]
    observe(running, "running", seq=7)
    told(image, "finished", engine_id="sha256:1")
    assert snapshot(scene.owner, running).status_code == 202


def test_another_workspace_is_not_held_back(scene: Scene, running: Workspace) -> None:
    taken(scene, running)
    other = scene.create(name="other")
    observe(other, "running")
    assert snapshot(scene.owner, other).status_code == 202


def test_deleting_the_workspace_asks_the_snapshot_to_end(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    told(image, "building")
    workspace_delete(actor=scene.owner, workspace=running)
    build = image.builds.get()
    assert (build.status, build.cancel_requested) == ("building", True)
    desired = wanted(image).build
    assert desired is not None
    assert desired.cancel
    told(image, "cancelled", message="The workspace was deleted.")
    assert (image.status, image.source_workspace) == ("cancelled", running.pk)


def test_deleting_on_a_silent_host_ends_what_has_not_begun(
    scene: Scene, running: Workspace
) -> None:
    image = taken(scene, running)
    Host.objects.filter(pk=scene.host.pk).update(last_heartbeat=None)
    workspace_delete(actor=scene.owner, workspace=running)
    image.refresh_from_db()
    assert (image.status, image.builds.get().status) == ("cancelled", "cancelled")


def test_deleting_leaves_finished_snapshots_alone(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    told(image, "finished", engine_id="sha256:1")
    workspace_delete(actor=scene.owner, workspace=running)
    image.refresh_from_db()
    assert (image.status, image.engine_id) == ("finished", "sha256:1")
    assert image.builds.get().cancel_requested is False


def test_a_new_workspace_starts_from_a_snapshot(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    told(image, "finished", engine_id="sha256:1", size_bytes=7)
    data = scene.body(name="second", image=str(image.pk))
    second = workspace_create(actor=scene.owner, data=data)
    state = host_state(Host.objects.get(pk=scene.host.pk))
    spec = next(item.spec for item in state.workspaces if item.id == str(second.pk))
    assert (spec.image_ref, spec.image_engine_id) == (naming.build_ref(str(image.pk)), "sha256:1")


def test_a_workspace_returns_to_its_snapshot_by_changing_its_image(
    scene: Scene, running: Workspace
) -> None:
    image = taken(scene, running)
    told(image, "finished", engine_id="sha256:1")
    url = f"{URL}{running.pk}/"
    plan = scene.client().post(f"{url}plan/", {"image": str(image.pk)}).json()
    assert plan["action"] == "replace"
    assert scene.client().patch(url, {"image": str(image.pk)}).status_code == 200
    state = host_state(Host.objects.get(pk=scene.host.pk))
    assert state.workspaces[0].spec.image_engine_id == "sha256:1"
    changes = {item["field"] for item in Event.objects.filter(workspace=running)[0].changes}
    assert changes == {"image"}


def test_a_failed_snapshot_is_tried_again_while_its_workspace_lives(
    scene: Scene, running: Workspace
) -> None:
    image = taken(scene, running)
    url = f"/api/v1/images/{image.pk}/build/"
    told(image, "failed", message="The disk is full.")
    assert scene.client().post(url).status_code == 202
    assert scene.client().post(url).json()["code"] == "under_way"
    told(image, "failed", message="The disk is full.")
    observe(running, "running", seq=8)
    taken(scene, running, "other")
    answer = scene.client().post(url)
    assert (answer.status_code, answer.json()["code"]) == (409, "under_way")
    workspace_delete(actor=scene.owner, workspace=running)
    answer = scene.client().post(url)
    assert answer.status_code == 409
    assert "is gone" in answer.json()["message"]


def test_a_retry_needs_the_right_to_modify_the_workspace(scene: Scene, running: Workspace) -> None:
    image = make_image(
        scene.host, scene.stranger, kind="snapshot", status="failed", source_workspace=running.pk
    )
    answer = api_client(scene.stranger).post(f"/api/v1/images/{image.pk}/build/")
    assert answer.status_code == 404
    assert image.builds.count() == 1


def test_a_finished_snapshot_is_not_made_again(scene: Scene, running: Workspace) -> None:
    image = taken(scene, running)
    told(image, "finished", engine_id="sha256:1")
    body = scene.client().get(f"/api/v1/images/{image.pk}/").json()
    assert "build" not in body["allowed_actions"]
    answer = scene.client().post(f"/api/v1/images/{image.pk}/build/")
    assert answer.status_code == 409
    assert "Take another snapshot" in answer.json()["message"]


def test_a_snapshot_can_be_cancelled_and_shows_like_any_build(
    scene: Scene, running: Workspace
) -> None:
    image = taken(scene, running)
    told(image, "building", progress=50)
    assert scene.client().post(f"/api/v1/images/{image.pk}/cancel/").status_code == 202
    assert image.builds.get().cancel_requested is True


def test_the_request_takes_a_fixed_number_of_queries(
    scene: Scene, running: Workspace, django_assert_max_num_queries: Any
) -> None:
    client = scene.client()
    url = f"{URL}{running.pk}/snapshot/"
    for number in range(10):
        make_build(make_image(scene.host, scene.owner, f"box-{number}", kind="snapshot"))
    with django_assert_max_num_queries(33):
        assert client.post(url, {}).status_code == 202
