"""Sharing: the list of grants as a whole, what a role then opens, and what it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings
from django.utils import timezone

from images.models import Image
from tests.factories import (
    api_client,
    make_bind,
    make_grant,
    make_group,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from trailer import policy
from trailer.access.models import Capability, Grant, HostCapability, Role
from trailer.accounts.models import User
from workspaces.models import Workspace

if TYPE_CHECKING:
    from hosts.models import Host, Volume
    from tests.factories import JsonClient

pytestmark = pytest.mark.django_db
WORKSPACES = "/api/v1/workspaces/"


@pytest.fixture
def workspace(host: Host, owner: User) -> Workspace:
    return make_workspace(host, owner, "box")


def url(row: Any) -> str:
    return f"/api/v1/{row._meta.model_name}s/{row.pk}/"


def put(client: JsonClient, row: Any, entries: Any) -> Any:
    return client.put(f"{url(row)}grants/", entries, format="json")


@pytest.mark.parametrize(
    "make", [make_workspace, make_image, make_volume, make_network, make_stack]
)
def test_the_list_is_replaced_whole_and_read_back(
    make: Any, host: Host, owner: User, stranger: User
) -> None:
    row, client, eva = make(host, owner), api_client(owner), make_user("eva")
    make_group(eva, name="lab")
    later = (timezone.now() + timedelta(days=1)).replace(microsecond=0)
    entries = [
        {"user": "stan", "role": "viewer"},
        {"user": str(eva.pk), "role": "editor", "expires_at": later.isoformat()},
        {"group": "lab", "role": "manager"},
    ]
    answer = put(client, row, entries)
    assert answer.status_code == 200, answer.content
    told = [(g["user"], g["username"], g["group"], g["role"]) for g in answer.json()]
    assert told == [
        (str(stranger.pk), "stan", None, "viewer"),
        (str(eva.pk), "eva", None, "editor"),
        (None, None, "lab", "manager"),
    ]
    assert client.get(f"{url(row)}grants/").json() == answer.json()
    assert api_client(stranger).get(url(row)).status_code == 200

    # What an answer holds may be sent back, and changes nothing.
    before = list(Grant.objects.values())
    assert put(client, row, answer.json()).status_code == 200
    assert list(Grant.objects.values()) == before
    assert put(client, row, [{"user": "stan", "role": "editor"}]).status_code == 200
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(stranger, Role.EDITOR)]
    assert put(client, row, []).json() == []
    assert api_client(stranger).get(url(row)).status_code == 404


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ({}, "grants"),
        ([1], "grants.0"),
        ([{"role": "viewer"}], "grants.0.user"),
        ([{"user": "stan", "group": "lab", "role": "viewer"}], "grants.0.user"),
        ([{"user": "stan"}], "grants.0.role"),
        ([{"user": "stan", "role": "owner"}], "grants.0.role"),
        ([{"user": "stan", "role": 1}], "grants.0.role"),
        ([{"user": 5, "role": "viewer"}], "grants.0.user"),
        ([{"user": "nobody", "role": "viewer"}], "grants.0.user"),
        ([{"group": "nobody", "role": "viewer"}], "grants.0.group"),
        ([{"user": "olga", "role": "viewer"}], "grants.0.user"),
        ([{"user": "stan", "role": "viewer"}] * 2, "grants.1.user"),
        ([{"user": "stan", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}], ".expires"),
        ([{"user": "stan", "role": "viewer", "expires_at": "soon"}], "grants.0.expires_at"),
        ([{"user": "stan", "role": "viewer", "owner": True}], "grants.0.owner"),
        ([{"user": "stan", "role": "viewer", "rights": ["root"]}], "grants.0.rights"),
        ([{"user": "stan", "role": "viewer", "rights": "logs"}], "grants.0.rights"),
        ([{"user": "stan", "role": "editor", "rights": ["logs"]}], "grants.0.rights"),
        ([{"user": "stan", "role": "viewer"}] * 300, "grants"),
    ],
)
def test_a_bad_list_is_refused_and_changes_nothing(
    workspace: Workspace, owner: User, stranger: User, entries: Any, field: str
) -> None:
    make_grant(workspace, stranger, Role.VIEWER)
    answer = put(api_client(owner), workspace, entries)
    assert answer.status_code == 400
    assert any(field in name for name in answer.json()["fields"]), answer.json()
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(stranger, Role.VIEWER)]


def test_an_expired_grant_opens_nothing_and_may_stay_in_the_list(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    past = timezone.now() - timedelta(seconds=1)
    make_grant(workspace, stranger, Role.MANAGER, expires_at=past)
    assert api_client(stranger).get(url(workspace)).status_code == 404
    client = api_client(owner)
    listed = client.get(f"{url(workspace)}grants/").json()
    assert put(client, workspace, listed).status_code == 200
    assert Grant.objects.get().expires_at == past


def test_a_manager_shares_but_does_not_hand_over(
    workspace: Workspace, stranger: User, admin: User
) -> None:
    make_grant(workspace, stranger, Role.MANAGER)
    make_user("eva")
    client = api_client(stranger)
    assert put(client, workspace, [{"user": "eva", "role": "manager"}]).json() == []
    assert client.get(url(workspace)).status_code == 404
    assert client.post(f"{url(workspace)}transfer/", {"owner": "stan"}).status_code == 404


def test_handing_over_keeps_the_former_owner_as_a_manager(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.VIEWER)
    answer = api_client(owner).post(f"{url(workspace)}transfer/", {"owner": "stan"})
    assert (answer.status_code, answer.json()["owner"]) == (202, "stan")
    workspace.refresh_from_db()
    assert (workspace.owner, workspace.revision) == (stranger, 1)
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(owner, Role.MANAGER)]
    [event] = api_client(stranger).get(f"{url(workspace)}events/").json()["results"]
    assert (event["kind"], event["actor"]) == ("transferred", "olga")
    again = api_client(owner).post(f"{url(workspace)}transfer/", {"owner": "olga"})
    assert again.status_code == 403


def test_a_viewer_sees_what_a_workspace_is_made_of_and_not_how_that_is_made(
    workspace: Workspace, stranger: User
) -> None:
    Image.objects.filter(pk=workspace.image_id).update(name="base", build_args={"KEY": "s3cr3t"})
    make_grant(workspace, stranger, Role.VIEWER)
    client = api_client(stranger)
    shown = client.get(url(workspace))
    assert shown.json()["image_name"] == "base"
    assert shown.json()["host_name"] == workspace.host.name
    image = client.get(url(workspace.image))
    assert image.json()["name"] == "base"
    assert "s3cr3t" not in shown.content.decode() + image.content.decode()


def test_an_editor_attaches_only_what_they_may_use(
    workspace: Workspace, host: Host, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.EDITOR)
    client = api_client(stranger)
    secret, shared, bind = (make_volume(host, owner), make_volume(host, owner), make_bind(host))
    network = make_network(host, owner)
    foreign = make_image(host, owner)

    def mounted(volume: Volume, **fields: Any) -> Any:
        return {"mounts": [{"volume": str(volume.pk), "target": "/data", **fields}]}

    for body in (
        mounted(secret),
        mounted(bind),
        {"networks": [str(network.pk)]},
        {"image": str(foreign.pk)},
    ):
        assert client.patch(url(workspace), body).status_code == 400, body
    assert client.patch(url(workspace), {"nested_virtualization": True}).status_code == 403

    make_grant(shared, stranger, Role.VIEWER)
    refused = client.patch(url(workspace), mounted(shared))
    assert "read-only" in refused.json()["message"]
    assert client.patch(url(workspace), mounted(shared, read_only=True)).status_code == 200
    assert client.patch(url(workspace), mounted(shared, read_only=False)).status_code == 400
    Grant.objects.filter(kind="volume").update(role=Role.EDITOR)
    assert client.patch(url(workspace), mounted(shared, read_only=False)).status_code == 200
    # What is there may stay when somebody else edits the rest.
    Grant.objects.filter(kind="volume").delete()
    assert client.patch(url(workspace), {"cpus": 1}).status_code == 200


def test_cloning_and_rolling_back_judge_what_they_bring_back(
    workspace: Workspace, host: Host, owner: User, stranger: User, admin: User
) -> None:
    volume = make_volume(host, owner)
    mounts = [{"volume": str(volume.pk), "target": "/data"}]
    assert api_client(owner).patch(url(workspace), {"mounts": mounts}).status_code == 200
    boss = api_client(admin)
    assert boss.patch(url(workspace), {"nested_virtualization": True}).status_code == 200
    make_grant(workspace, stranger, Role.EDITOR)
    make_grant(workspace.image, stranger, Role.VIEWER)
    client = api_client(stranger)
    assert client.post(f"{url(workspace)}clone/", {"name": "copy"}).status_code == 400
    assert boss.patch(url(workspace), {"mounts": []}).status_code == 200
    assert client.post(f"{url(workspace)}clone/", {"name": "copy"}).status_code == 403
    off = {"nested_virtualization": False}
    assert client.patch(url(workspace), off).status_code == 200
    for revision, code in ((2, 400), (4, 403)):
        answer = client.post(f"{url(workspace)}rollback/", {"revision": revision})
        assert answer.status_code == code, (revision, answer.content)
    assert client.post(f"{url(workspace)}clone/", {"name": "copy"}).status_code == 202


def test_a_snapshot_is_shared_with_nobody_but_the_one_who_takes_it(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    Workspace.objects.update(observed_status="running", observed_revision=1)
    for name, role in (("vera", Role.VIEWER), ("eddy", Role.EDITOR), ("mia", Role.MANAGER)):
        make_grant(workspace, make_user(name), role)
    make_grant(workspace, stranger, Role.EDITOR)
    answer = api_client(stranger).post(f"{url(workspace)}snapshot/", {"name": "saved"})
    assert answer.status_code == 202, answer.content
    image = Image.objects.get(name="saved")
    users = [user for user in User.objects.all() if policy.allows(user, "image.use", image)]
    assert {user.username for user in users} == {owner.username, stranger.username}


def test_an_editor_of_an_image_does_not_borrow_its_credential(
    host: Host, owner: User, stranger: User
) -> None:
    registry = make_registry(owner)
    image = make_image(host, owner, reference="registry.example.com/a:1", registry=registry)
    make_grant(image, stranger, Role.EDITOR)
    client = api_client(stranger)
    answer = client.patch(url(image), {"reference": "registry.example.com/b:1"})
    assert answer.status_code == 403
    assert "credential" in answer.json()["message"]
    assert client.patch(url(image), {"name": "renamed"}).status_code == 200


def test_grants_go_with_their_object_and_with_their_user(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.VIEWER)
    assert api_client(owner).delete(url(workspace)).status_code == 204
    assert Grant.objects.count() == 0
    make_grant(make_network(owner=owner), stranger, Role.VIEWER)
    stranger.delete()
    assert Grant.objects.count() == 0


def test_a_list_of_shared_workspaces_takes_the_same_queries(
    host: Host, owner: User, stranger: User, django_assert_num_queries: Any
) -> None:
    client = api_client(stranger)
    make_grant(make_workspace(host, owner), stranger, Role.EDITOR)
    client.get(WORKSPACES)
    with django_assert_num_queries(9):
        assert client.get(WORKSPACES).json()["count"] == 1
    group = make_group(stranger)
    for number in range(6):
        make_grant(make_workspace(host, owner), group if number % 2 else stranger, Role.VIEWER)
    with django_assert_num_queries(9):
        assert client.get(WORKSPACES).json()["count"] == 7


CREATIONS = {
    "workspaces": ("workspaces", {"name": "box"}),
    "networks": ("networks", {"name": "net"}),
    "volumes": ("volumes", {"name": "vol"}),
    "bind": ("volumes", {"name": "vol", "kind": "bind", "source": "/srv/data"}),
    "images": ("images", {"name": "img", "reference": "busybox"}),
}


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("capability", CREATIONS)
def test_a_host_is_used_by_everybody_or_by_capability(
    host: Host, stranger: User, capability: str, is_open: bool
) -> None:
    route, body = CREATIONS[capability]
    client = api_client(stranger)
    with override_settings(TRAILER_OPEN_HOSTS=is_open):
        if capability == "workspaces":
            body = {**body, "image": str(make_image(host, stranger).pk)}
        body = {**body, "host": str(host.pk)}
        address = f"/api/v1/{route}/"
        assert client.get("/api/v1/hosts/").json()["count"] == int(is_open)
        first = client.post(address, body)
        if is_open and capability != "bind":
            assert first.status_code == 201, first.content
            return
        assert first.status_code == (403 if is_open else 400), first.content
        HostCapability.objects.create(
            user=stranger, host_id=host.pk, capability=Capability.PRIVILEGED
        )
        # Any capability shows the host, but each opens only its own.
        assert client.get("/api/v1/hosts/").json()["count"] == 1
        assert client.post(address, body).status_code == 403
        group = make_group(stranger)
        HostCapability.objects.create(group=group, host_id=host.pk, capability=capability)
        assert client.post(address, body).status_code == 201


def test_privileged_settings_need_their_capability(host: Host, stranger: User) -> None:
    image = make_image(host, stranger)
    body: dict[str, Any] = {"name": "vm", "host": str(host.pk), "image": str(image.pk)}
    body |= {"nested_virtualization": True}
    client = api_client(stranger)
    assert client.post(WORKSPACES, body).status_code == 403
    HostCapability.objects.create(user=stranger, host_id=host.pk, capability=Capability.PRIVILEGED)
    assert client.post(WORKSPACES, body).status_code == 201


def test_admins_say_who_may_do_what_on_a_host(host: Host, admin: User, stranger: User) -> None:
    client, address = api_client(admin), f"/api/v1/hosts/{host.pk}/access/"
    make_group(stranger, name="lab")
    entries = [
        {"user": "stan", "capabilities": ["bind", "view"]},
        {"group": "lab", "capabilities": ["workspaces"]},
    ]
    answer = client.put(address, entries, format="json")
    assert answer.status_code == 200, answer.content
    assert [(e["username"], e["group"], e["capabilities"]) for e in answer.json()] == [
        (None, "lab", ["workspaces"]),
        ("stan", None, ["view", "bind"]),
    ]
    assert client.get(address).json() == answer.json()
    bad = [{"user": "stan", "capabilities": ["root"]}]
    assert client.put(address, bad, format="json").status_code == 400
    assert client.put(address, answer.json(), format="json").json() == answer.json()
    assert api_client(stranger).get(address).status_code == 403
    assert api_client(admin, scope="write").put(address, [], format="json").status_code == 403
