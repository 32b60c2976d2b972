"""Which workspaces lose files when an image is made again, or a stack deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host
from tests.factories import (
    api_client,
    make_grant,
    make_host,
    make_image,
    make_user,
    make_workspace,
)
from tests.workspaces.stacks.scene import StackScene, make_stack_scene
from trailer.access.models import Role
from workspaces.models import Workspace
from workspaces.stacks.models import Stack, StackRevision

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
WEB = """\
services:
  web:
    image: app:1
    environment: {MODE: one}
    x-trailer: {update_policy: if_missing}
"""
TWO = WEB + "  worker: {image: 'app:1', x-trailer: {update_policy: if_missing}}\n"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> StackScene:
    scene = make_stack_scene()
    scene.repository_again(monkeypatch)
    scene.repository.push(TWO)
    return scene


@pytest.fixture
def stack(scene: StackScene) -> Stack:
    """Deployed, and then its host is away: nobody can say what its containers wrote."""
    stack = scene.create()
    scene.work()
    Host.objects.update(last_heartbeat=None)
    return stack


def plan(owner: User, path: str, body: Any = None) -> Any:
    answer = api_client(owner).post(f"/api/v1/{path}/plan/", body or {})
    assert answer.status_code == 200, answer.json()
    return answer.json()


def replaced(told: Any) -> dict[str, str]:
    assert all(item["loses_files"] for item in told["workspaces"])
    return {item["service"]: item["why"] for item in told["workspaces"]}


def test_a_deploy_of_the_same_files_replaces_nothing(scene: StackScene, stack: Stack) -> None:
    assert plan(scene.owner, f"stacks/{stack.pk}/deploy") == {"workspaces": [], "problem": ""}


def test_a_deploy_tells_the_changed_and_the_removed_services_and_keeps_nothing(
    scene: StackScene, stack: Stack
) -> None:
    scene.repository.push(WEB.replace("one", "two"))
    before = list(Workspace.objects.values_list("pk", "revision").order_by("pk"))
    for action in ("deploy", "sync"):
        told = plan(scene.owner, f"stacks/{stack.pk}/{action}")
        assert replaced(told) == {"web": "changed", "worker": "removed"}
    assert "Host local is pending." in told["workspaces"][0]["writable_layer_reason"]
    assert list(Workspace.objects.values_list("pk", "revision").order_by("pk")) == before
    assert StackRevision.objects.count() == 1


def test_an_image_that_is_pulled_again_may_replace_its_services(
    scene: StackScene, stack: Stack
) -> None:
    scene.repository.push(TWO.replace("if_missing", "always"))
    told = plan(scene.owner, f"stacks/{stack.pk}/deploy")
    assert set(replaced(told).values()) == {"pulled_again"}
    assert plan(scene.owner, f"stacks/{stack.pk}/sync")["workspaces"] == []


def test_a_file_that_can_not_be_used_replaces_nothing_and_says_why(
    scene: StackScene, stack: Stack
) -> None:
    scene.repository.push("services: 7")
    told = plan(scene.owner, f"stacks/{stack.pk}/deploy")
    assert (told["workspaces"], bool(told["problem"])) == ([], True)


def test_a_rollback_tells_the_same(scene: StackScene, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = scene.create()
    scene.work()
    scene.repository.push(TWO.replace("one", "two"))
    assert api_client(scene.owner).post(f"/api/v1/stacks/{stack.pk}/sync/", {}).status_code == 202
    scene.work()
    Host.objects.update(last_heartbeat=None)
    told = plan(scene.owner, f"stacks/{stack.pk}/rollback", {"revision": 1})
    assert replaced(told)["web"] == "changed"


def test_an_image_tells_the_running_workspaces_that_its_editor_sees() -> None:
    owner, other = make_user(), make_user()
    image = make_image(make_host(last_heartbeat=None), owner)
    ran: dict[str, Any] = {"image": image, "container_id": "c" * 64}
    for name, user, fields in (
        ("mine", owner, ran),
        ("of-others", other, ran),
        ("off", owner, ran | {"desired_state": "stopped"}),
        ("never-ran", owner, {"image": image}),
    ):
        make_workspace(image.host, user, name, **fields)
    told = plan(owner, f"images/{image.pk}/build")
    assert [item["name"] for item in told["workspaces"]] == ["mine"]
    assert told["workspaces"][0]["why"] == "image"
    make_grant(image, other, Role.VIEWER)
    answer = api_client(other).post(f"/api/v1/images/{image.pk}/build/plan/", {})
    assert answer.status_code == 403
