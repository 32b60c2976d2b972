"""Who still uses an object is named, and whoever manages it can take it away from a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from hosts.models import Host, Tombstone, Volume
from tests.factories import api_client, make_grant, make_image, make_network, make_stack
from tests.workspaces.scene import URL, Scene, observe
from trailer.access.models import Grant, Role
from trailer.audit.models import AuditEntry
from workspaces.control.compile import host_state
from workspaces.models import Event, Workspace
from workspaces.services import workspace_create, workspace_delete

if TYPE_CHECKING:
    from trailer.accounts.models import User

KINDS = ("volume", "network", "image")


def made_with(scene: Scene, kind: str, *, name: str = "volrev") -> Workspace:
    """A workspace of the stranger's that has the owner's object, by a grant."""
    thing = getattr(scene, kind)
    make_grant(thing, scene.stranger, Role.EDITOR)
    if kind != "image":
        make_grant(scene.image, scene.stranger, Role.VIEWER)
    body: dict[str, Any] = {"name": name}
    if kind == "volume":
        body["mounts"] = [{"volume": str(thing.pk), "target": "/data"}]
    elif kind == "network":
        body["networks"] = [str(thing.pk)]
    workspace = workspace_create(actor=scene.stranger, data=scene.body(**body))
    observe(workspace, "running")
    return workspace


def address(thing: Any) -> str:
    return f"/api/v1/{thing._meta.model_name}s/{thing.pk}/"


def evict(actor: User, thing: Any, workspace: Workspace) -> Any:
    return api_client(actor).post(f"{address(thing)}evict/", {"workspace": str(workspace.pk)})


def without(scene: Scene, kind: str) -> dict[str, Any]:
    """The edit that takes the object out."""
    if kind == "volume":
        return {"mounts": []}
    if kind == "network":
        return {"networks": []}
    return {"image": str(scene.stranger.images.get(name="own").pk)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_to_a_revocation_names_who_still_uses_the_object(
    scene: Scene, kind: str
) -> None:
    workspace, thing = made_with(scene, kind), getattr(scene, kind)
    client = scene.client()
    told = client.get(f"{address(thing)}grants/").json()
    assert client.put(f"{address(thing)}grants/", told).json() == told
    [left] = client.put(f"{address(thing)}grants/", []).json()
    assert (left["username"], left["role"]) == ("stranger", None)
    named = {"id": str(workspace.pk), "name": "volrev", "owner": "stranger"}
    assert left["still_uses"] == [named]
    assert client.get(f"{address(thing)}grants/").json() == []
    # What was answered may be sent back.
    assert client.put(f"{address(thing)}grants/", [left]).status_code == 200
    assert not Grant.objects.filter(object_id=thing.pk).exists()


def test_a_lower_role_is_named_only_where_it_is_not_enough(scene: Scene) -> None:
    made_with(scene, "volume")
    entries = [{"user": "stranger", "role": "viewer"}]
    listed, left = scene.client().put(f"{address(scene.volume)}grants/", entries).json()
    assert (listed["role"], "still_uses" in listed) == ("viewer", False)
    assert [one["name"] for one in left["still_uses"]] == ["volrev"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_shared_still", [True, False])
def test_evicting_stops_the_workspace_until_the_object_is_out_of_it(
    scene: Scene, kind: str, is_shared_still: bool
) -> None:
    workspace, thing = made_with(scene, kind), getattr(scene, kind)
    if kind == "image":
        make_image(scene.host, scene.stranger, "own")
    if not is_shared_still:
        scene.client().put(f"{address(thing)}grants/", [])
    answer = evict(scene.owner, thing, workspace)
    assert answer.status_code == 202, answer.content
    assert answer.json() == {
        "id": str(workspace.pk),
        "name": "volrev",
        "owner": "stranger",
        "desired_state": "stopped",
    }
    assert AuditEntry.objects.filter(action=f"{kind}.evict", object_id=str(thing.pk)).exists()
    event = Event.objects.filter(workspace=workspace, kind="evicted").get()
    assert event.cause == f"Evicted from the {kind} {thing.name}."
    member = api_client(scene.stranger)
    workspace.refresh_from_db()
    observe(workspace, "stopped", seq=2)
    for action in ("start", "redeploy"):
        refused = member.post(f"{URL}{workspace.pk}/{action}/")
        assert (refused.status_code, refused.json()["code"]) == (409, "blocked")
        assert "ended by whoever manages" in refused.json()["message"]
    assert member.patch(f"{URL}{workspace.pk}/", {"description": "x"}).status_code == 200
    assert evict(scene.owner, thing, workspace).status_code == 409
    assert member.patch(f"{URL}{workspace.pk}/", without(scene, kind)).status_code == 200
    assert member.post(f"{URL}{workspace.pk}/start/").status_code == 202
    [told] = host_state(Host.objects.get(pk=scene.host.pk)).workspaces
    assert (told.desired_state, told.blocked) == ("running", "")


def test_only_who_manages_the_object_evicts_and_only_what_uses_it(scene: Scene) -> None:
    workspace = made_with(scene, "volume")
    assert evict(scene.stranger, scene.volume, workspace).status_code == 403
    assert evict(scene.admin, scene.network, workspace).status_code == 400
    other = make_network(scene.host, scene.admin)
    assert evict(scene.stranger, other, workspace).status_code == 404
    wrong = scene.client().post(f"{address(scene.volume)}evict/", {"workspace": "x"})
    assert wrong.status_code == 400
    make_grant(scene.network, scene.stranger, Role.MANAGER)
    workspace.networks.add(scene.network)
    assert evict(scene.stranger, scene.network, workspace).status_code == 202


@pytest.mark.parametrize("kind", ["volume", "network"])
def test_the_owner_can_delete_what_only_evicted_workspaces_have(scene: Scene, kind: str) -> None:
    workspace, thing = made_with(scene, kind), getattr(scene, kind)
    url = f"{address(thing)}?confirm={thing.name}"
    refused = scene.client().delete(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    assert "evict" in refused.json()["message"]
    assert evict(scene.owner, thing, workspace).status_code == 202
    assert scene.client().delete(url).status_code == 204
    assert Tombstone.objects.filter(kind=kind, object_id=thing.pk).exists()
    workspace.refresh_from_db()
    assert (workspace.desired_state, workspace.mounts.count()) == ("stopped", 0)
    assert not workspace.networks.exists()
    last = Event.objects.filter(workspace=workspace, kind="changed").get()
    assert "was deleted" in last.cause
    assert [change["field"] for change in last.changes] == [
        "mounts" if kind == "volume" else "networks"
    ]
    assert api_client(scene.stranger).post(f"{URL}{workspace.pk}/start/").status_code == 202


def test_a_volume_that_another_workspace_mounts_too_is_not_deleted(scene: Scene) -> None:
    workspace = made_with(scene, "volume")
    other = made_with_another(scene)
    evict(scene.owner, scene.volume, workspace)
    url = f"{address(scene.volume)}?confirm=data"
    assert "mounted by other" in scene.client().delete(url).json()["message"]
    assert workspace.mounts.count() == 1
    workspace_delete(actor=scene.stranger, workspace=other)
    assert scene.client().delete(url).status_code == 204


def made_with_another(scene: Scene) -> Workspace:
    mounts = [{"volume": str(scene.volume.pk), "target": "/d", "read_only": True}]
    return workspace_create(actor=scene.stranger, data=scene.body(name="other", mounts=mounts))


def test_a_service_of_a_stack_is_evicted_too(scene: Scene) -> None:
    workspace = made_with(scene, "volume")
    stack = make_stack(scene.host, scene.stranger)
    Workspace.objects.filter(pk=workspace.pk).update(stack=stack.pk, service="web")
    assert evict(scene.owner, scene.volume, workspace).json()["desired_state"] == "stopped"


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_the_object_lists_its_users_with_a_button(scene: Scene, kind: str) -> None:
    workspace, thing = made_with(scene, kind), getattr(scene, kind)
    browser = Client()
    browser.force_login(scene.owner)
    page = f"/{kind}s/{thing.pk}/"
    html = browser.get(page).content.decode()
    assert f'data-object-user="{workspace.pk}"' in html
    assert f'data-body="workspace={workspace.pk}"' in html
    # Named, but the owner may not open it.
    assert f'href="/workspaces/{workspace.pk}/"' not in html
    scene.client().put(f"{address(thing)}grants/", [])
    part = browser.get(f"{page}?part=users").content.decode()
    assert "stranger may not" in part
    evict(scene.owner, thing, workspace)
    part = browser.get(f"{page}?part=users").content.decode()
    assert "evicted" in part
    assert 'data-action="evict"' not in part
    make_grant(thing, scene.stranger, Role.EDITOR)
    browser.force_login(scene.stranger)
    assert "data-object-user" not in browser.get(page).content.decode()


def test_an_object_of_nobody_else_is_listed_with_its_own_users(scene: Scene) -> None:
    scene.create_full()
    assert Volume.objects.count() == 1
    browser = Client()
    browser.force_login(scene.owner)
    html = browser.get(f"/volumes/{scene.volume.pk}/?part=users").content.decode()
    assert "box" in html
