"""Quotas of users and groups: enforced on every way that takes more, explained, shown."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections, transaction

from tests.factories import api_client, make_group, make_image, make_user
from tests.workspaces.scene import URL, Scene, make_scene
from trailer import policy
from trailer.access.models import Quota
from trailer.errors import ApplicationError, Invalid
from workspaces.models import Workspace
from workspaces.services import (
    workspace_clone,
    workspace_create,
    workspace_plan,
    workspace_start,
    workspace_stop,
    workspace_transfer,
    workspace_update,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
GIB = 1024**3
SIZE = {"cpus": 1, "memory_bytes": GIB}


def limit(scene: Scene, **limits: Any) -> Quota:
    return Quota.objects.create(user=scene.owner, **limits)


def refused(call: Callable[[], Any]) -> Invalid:
    with pytest.raises(Invalid) as caught:
        call()
    assert caught.value.code == "quota_exceeded"
    return caught.value


def test_one_workspace_too_many_is_refused_with_the_numbers(scene: Scene) -> None:
    limit(scene, workspaces=1)
    scene.create()
    problem = refused(lambda: scene.create(name="two"))
    assert problem.message == (
        "Your quota allows 1 workspace; 1 is taken and this needs 1 more. "
        "Delete one, or ask an administrator for a larger quota."
    )
    assert list(problem.fields) == ["name"]
    assert Workspace.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "quota", "value"),
    [("cpus", 1.5, 1), ("memory_bytes", GIB, GIB), ("gpus", 1, {"count": 1})],
)
def test_what_runs_counts_and_what_is_stopped_does_not(
    field: str, quota: Any, value: Any, scene: Scene
) -> None:
    scene.host.gpus = [{"id": "a", "index": 0}, {"id": "b", "index": 1}]
    scene.host.save(update_fields=["gpus"])
    limit(scene, **{field: quota})
    one = scene.create(**{field: value})
    problem = refused(lambda: scene.create(name="two", **{field: value}))
    assert list(problem.fields) == [field]
    workspace_stop(actor=scene.owner, workspace=one)
    two = scene.create(name="two", **{field: value})
    refused(lambda: workspace_start(actor=scene.owner, workspace=one))
    workspace_stop(actor=scene.owner, workspace=two)
    workspace_start(actor=scene.owner, workspace=one)


def test_an_edit_that_takes_more_is_refused_and_so_is_its_plan(scene: Scene) -> None:
    limit(scene, cpus=2)
    box = scene.create(cpus=2)
    more = {"cpus": 3}
    refused(lambda: workspace_update(actor=scene.owner, workspace=box, data=more))
    refused(lambda: workspace_plan(actor=scene.owner, workspace=box, data=more))
    assert workspace_update(actor=scene.owner, workspace=box, data={"cpus": 1}).cpus == 1


def test_a_lowered_quota_blocks_neither_less_nor_other_edits(scene: Scene) -> None:
    quota = limit(scene, cpus=4, workspaces=3)
    box = scene.create(cpus=4)
    Quota.objects.filter(pk=quota.pk).update(cpus=1, workspaces=0)
    workspace_update(actor=scene.owner, workspace=box, data={"description": "still mine"})
    assert workspace_update(actor=scene.owner, workspace=box, data={"cpus": 3}).cpus == 3


def test_with_a_limit_a_workspace_must_say_how_much_it_takes(scene: Scene) -> None:
    limit(scene, memory_bytes=4 * GIB)
    problem = refused(scene.create)
    assert "Set memory_bytes" in problem.message
    box = scene.create(memory_bytes=GIB)
    without = {"memory_bytes": None}
    refused(lambda: workspace_update(actor=scene.owner, workspace=box, data=without))


def test_a_clone_and_a_transfer_count_for_their_new_owner(scene: Scene) -> None:
    box = scene.create(**SIZE)
    limit(scene, workspaces=1)
    refused(lambda: workspace_clone(actor=scene.owner, workspace=box, data={"name": "copy"}))
    other = make_user("olga")
    Quota.objects.create(user=other, cpus=0.5)
    problem = refused(lambda: workspace_transfer(actor=scene.owner, workspace=box, owner="olga"))
    assert problem.message.startswith("The quota of olga")


def test_a_quota_is_not_passed_by_handing_workspaces_to_somebody_without_one(
    scene: Scene,
) -> None:
    limit(scene, workspaces=1)
    other, box = make_user("olga"), scene.create()
    workspace_transfer(actor=scene.owner, workspace=box, owner="olga")
    box.refresh_from_db()
    assert box.owner == other
    assert policy.allows(scene.owner, "workspace.view", box)
    for action in ("modify", "exec", "attach", "share", "delete"):
        assert not policy.allows(scene.owner, f"workspace.{action}", box)
    box = workspace_transfer(actor=other, workspace=box, owner="owner")
    workspace_transfer(actor=scene.admin, workspace=box, owner="olga")
    box.refresh_from_db()
    assert policy.allows(scene.owner, "workspace.delete", box)


def test_nobody_is_given_a_workspace_on_a_host_that_they_may_not_use(
    scene: Scene, settings: Any
) -> None:
    box = scene.create()
    settings.TRAILER_OPEN_HOSTS = False
    make_user("olga")
    with pytest.raises(Invalid) as caught:
        workspace_transfer(actor=scene.owner, workspace=box, owner="olga")
    assert "olga may not create workspaces" in caught.value.fields["owner"][0]


def test_an_editor_spends_the_owners_quota(scene: Scene) -> None:
    limit(scene, cpus=1)
    box = scene.create(cpus=1)
    more = {"cpus": 2}
    problem = refused(lambda: workspace_update(actor=scene.admin, workspace=box, data=more))
    assert problem.message.startswith("The quota of owner allows 1 CPU")


def test_a_groups_quota_counts_for_all_members_together(scene: Scene) -> None:
    group = make_group(scene.owner, scene.admin, name="lab")
    Quota.objects.create(group=group, workspaces=2)
    scene.create()
    workspace_create(actor=scene.admin, data=scene.body(name="two"))
    problem = refused(lambda: scene.create(name="three"))
    assert problem.message.startswith("The quota of the group lab allows 2 workspaces")
    scene.owner.groups.clear()
    scene.create(name="three")


def test_images_stop_at_the_disk_quota(scene: Scene) -> None:
    limit(scene, disk_bytes=GIB)
    make_image(scene.host, scene.owner, size_bytes=GIB)
    body = {"name": "more", "host": str(scene.host.pk), "reference": "busybox"}
    answer = api_client(scene.owner).post("/api/v1/images/", body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "quota_exceeded"
    assert "Delete an image" in answer.json()["message"]


def test_building_again_stops_at_the_disk_quota_unless_its_own_size_is_all_there_is(
    scene: Scene,
) -> None:
    limit(scene, disk_bytes=GIB)
    large = make_image(scene.host, scene.owner, size_bytes=GIB)
    client = api_client(scene.owner)
    assert client.post(f"/api/v1/images/{large.pk}/build/").status_code == 202
    small = make_image(scene.host, scene.owner, size_bytes=1, kind="build")
    answer = client.post(f"/api/v1/images/{small.pk}/build/")
    assert (answer.status_code, answer.json()["code"]) == (400, "quota_exceeded")
    edit = {"dockerfile": "FROM debian"}
    assert client.patch(f"/api/v1/images/{small.pk}/", edit).status_code == 400
    assert client.patch(f"/api/v1/images/{small.pk}/", {"name": "other"}).status_code == 200


def test_an_admin_sets_a_quota_and_its_user_sees_what_is_taken(scene: Scene) -> None:
    scene.create(cpus=1.5)
    client, url = api_client(scene.admin), f"/api/v1/users/{scene.owner.pk}/quota/"
    answer = client.put(url, {"workspaces": 3, "cpus": 4})
    assert answer.json()["limits"] == {
        "workspaces": 3,
        "cpus": 4.0,
        "memory_bytes": None,
        "gpus": None,
        "disk_bytes": None,
    }
    own = api_client(scene.owner).get("/api/v1/me/quota/").json()
    assert [(q["subject"], q["used"]["workspaces"], q["used"]["cpus"]) for q in own] == [
        ("user", 1, 1.5)
    ]
    assert client.put(url, {}).json()["limits"]["cpus"] is None
    assert not Quota.objects.exists()


@pytest.mark.parametrize(
    "body", [{"cpus": "4"}, {"cpus": -1}, {"workspaces": 1.5}, {"disks": 1}, {"gpus": True}, [1]]
)
def test_a_quota_that_is_none_is_400(body: Any, scene: Scene) -> None:
    url = f"/api/v1/users/{scene.owner.pk}/quota/"
    assert api_client(scene.admin).put(url, body).status_code == 400


def test_a_refusal_reaches_scripts_as_400_with_its_code(scene: Scene) -> None:
    limit(scene, workspaces=0)
    answer = scene.client().post(URL, scene.body())
    assert (answer.status_code, answer.json()["code"]) == (400, "quota_exceeded")


@pytest.mark.django_db(transaction=True)
def test_parallel_requests_do_not_slip_past_a_quota() -> None:
    scene = make_scene()
    limit(scene, workspaces=2)
    done: list[str] = []

    def create(number: int) -> None:
        try:
            with transaction.atomic():
                scene.create(name=f"box-{number}")
            done.append("made")
        except ApplicationError as error:
            done.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=create, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(done) == ["made"] * 2 + ["quota_exceeded"] * 4
    assert Workspace.objects.count() == 2
