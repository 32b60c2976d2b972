"""A volume that was made again, empty: told by an event and a notice until acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from agent.protocol.report import ResourceStatus
from tests.factories import (
    api_client,
    make_grant,
    make_host,
    make_user,
    make_volume,
    make_workspace,
)
from tests.workspaces.agent_client import AgentClient
from trailer.access.models import Role
from trailer.audit.models import AuditEntry
from workspaces.models import Event, Mount

if TYPE_CHECKING:
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


class Scene:
    def __init__(self) -> None:
        self.owner = make_user()
        self.host = make_host()
        self.volume = make_volume(self.host, self.owner, name="data")
        self.agent = AgentClient(self.host)
        self.api = api_client(self.owner)
        self.seq = 0

    def workspace(self, **fields: Any) -> Workspace:
        row = make_workspace(self.host, self.owner, **fields)
        Mount.objects.create(workspace=row, volume=self.volume, target="/data")
        return row

    def sees(self, instance: str, **fields: Any) -> None:
        self.seq += 1
        item = ResourceStatus(
            seq=fields.pop("seq", self.seq),
            resource="volume",
            object_id=str(self.volume.pk),
            status=fields.pop("status", "created"),
            instance=instance,
        )
        assert self.agent.report(item).status_code == 200

    def shown(self) -> Any:
        return self.api.get(f"/api/v1/volumes/{self.volume.pk}/").json()


def events() -> list[Event]:
    return list(Event.objects.filter(kind="data_lost").order_by("workspace__name"))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_volume_that_was_made_again_tells_each_workspace_that_mounts_it(scene: Scene) -> None:
    for name in ("one", "two"):
        scene.workspace(name=name)
    make_workspace(scene.host, scene.owner, name="without")
    scene.sees("a")
    assert (events(), scene.shown()["notice"]) == ([], "")
    scene.sees("b")
    told = events()
    assert [event.workspace.name for event in told] == ["one", "two"]
    assert "The volume data was missing on the host and was made again, empty." in told[0].cause
    assert (told[0].actor, told[0].actor_name) == (None, "engine")
    shown = scene.shown()
    assert shown["data_gone_since"] is not None
    assert shown["notice"].startswith("Its data is gone since 20")
    notices = [w["notice"] for w in scene.api.get("/api/v1/workspaces/").json()["results"]]
    assert sorted(bool(notice) for notice in notices) == [False, True, True]
    assert any("The data of its volume data is gone since" in notice for notice in notices)


@pytest.mark.parametrize(
    "instances",
    [
        ("a",),
        ("", "a"),
        ("a", "", "a"),
        ("a", "a"),
        ("unmarked", "", "unmarked"),
    ],
)
def test_first_creations_and_reports_without_an_instance_tell_nothing(
    scene: Scene, instances: tuple[str, ...]
) -> None:
    scene.workspace()
    for instance in instances:
        scene.sees(instance)
    assert (events(), scene.shown()["data_gone_since"]) == ([], None)


def test_one_of_an_older_agent_that_is_made_again_is_told_too(scene: Scene) -> None:
    scene.workspace()
    scene.sees("unmarked")
    scene.sees("a")
    assert len(events()) == 1


def test_a_report_that_comes_twice_or_late_tells_it_once(scene: Scene) -> None:
    scene.workspace()
    scene.sees("a")
    scene.sees("b")
    scene.sees("b", seq=2)
    scene.sees("a", seq=1)
    assert len(events()) == 1
    assert scene.shown()["notice"]


def test_the_notice_stays_until_somebody_who_may_acknowledges_it(scene: Scene) -> None:
    workspace = scene.workspace()
    scene.sees("a")
    scene.sees("b")
    scene.sees("b", status="error")
    path = f"/api/v1/volumes/{scene.volume.pk}/acknowledge/"
    viewer = make_user()
    assert api_client(viewer).post(path, {}).status_code == 404
    make_grant(scene.volume, viewer, Role.VIEWER)
    assert api_client(viewer).post(path, {}).status_code == 403
    assert scene.shown()["notice"]
    answer = scene.api.post(path, {})
    assert answer.status_code == 200
    assert (answer.json()["data_gone_since"], answer.json()["notice"]) == (None, "")
    assert scene.api.get(f"/api/v1/workspaces/{workspace.pk}/").json()["notice"] == ""
    assert AuditEntry.objects.filter(action="volume.acknowledge").count() == 1
    assert scene.api.post(path, {}).status_code == 200
    assert AuditEntry.objects.filter(action="volume.acknowledge").count() == 1
    scene.sees("c")
    assert scene.shown()["notice"]


def test_pages_show_the_notice_and_who_may_take_it_off(scene: Scene) -> None:
    workspace = scene.workspace()
    scene.sees("a")
    scene.sees("b")
    viewer = make_user()
    make_grant(workspace, viewer, Role.VIEWER)
    for user, may in ((scene.owner, True), (viewer, False)):
        client = Client()
        client.force_login(user)
        html = client.get(f"/workspaces/{workspace.pk}/").content.decode()
        assert "is gone since" in html
        assert ('data-action="acknowledge"' in html) is may
    client.force_login(scene.owner)
    html = client.get(f"/volumes/{scene.volume.pk}/").content.decode()
    assert "Its data is gone since" in html
    assert 'data-action="acknowledge"' in html
    assert "Its data is gone since" in client.get("/volumes/").content.decode()
