"""Volumes and bind mounts over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host, Tombstone, Volume
from tests.factories import (
    api_client,
    make_bind,
    make_host,
    make_volume,
    make_workspace,
)
from workspaces.models import Mount

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/volumes/"


def test_a_volume_is_seen_by_its_owner_and_admins_only(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    volume = make_volume(host, owner, name="data")
    for actor, count, status in ((owner, 1, 200), (admin, 1, 200), (stranger, 0, 404)):
        client = api_client(actor)
        assert client.get(URL).json()["count"] == count
        assert client.get(f"{URL}{volume.pk}/").status_code == status
    assert api_client(stranger).delete(f"{URL}{volume.pk}/?confirm=data").status_code == 404
    assert api_client().get(URL).status_code == 401
    assert Volume.objects.exists()


def test_a_volume_is_made_and_the_agent_will_hear(host: Host, owner: User) -> None:
    before = host.desired_version
    answer = api_client(owner).post(URL, {"name": "data", "host": str(host.pk)})
    assert answer.status_code == 201
    assert (answer.json()["kind"], answer.json()["status"]) == ("volume", "pending")
    host.refresh_from_db()
    assert host.desired_version == before + 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "Data"}, "name"),
        ({"name": "taken"}, "name"),
        ({"name": ""}, "name"),
        ({"kind": "tmpfs"}, "kind"),
        ({"source": "/srv"}, "source"),
        ({"host": "x"}, "host"),
        ({"size": 5}, "size"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    host: Host, owner: User, fields: dict[str, Any], field: str
) -> None:
    make_volume(host, owner, name="taken")
    answer = api_client(owner).post(URL, {"name": "data", "host": str(host.pk)} | fields)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]
    assert Volume.objects.count() == 1


def test_only_admins_make_bind_mounts(host: Host, owner: User, admin: User) -> None:
    body = {"name": "data", "host": str(host.pk), "kind": "bind", "source": "/srv/data/"}
    assert api_client(owner).post(URL, body).status_code == 403
    answer = api_client(admin).post(URL, body)
    assert answer.status_code == 201
    assert answer.json()["source"] == "/srv/data"


@pytest.mark.parametrize(
    "source",
    [
        *("", "srv", "./srv", "/", "//", "/srv/../etc", "/srv/..", "/proc", "/proc/1", "/sys"),
        *("/dev", "/dev/sda", "/etc", "/etc/", "//etc", "/etc/./passwd", "/var/run", "/run"),
        *("/var", "/var/lib", "/var/lib/docker", "/var/lib/docker/volumes", "/run/docker.sock"),
        *("/srv/docker.sock", "/srv:/etc", "/" + "x" * 2000),
    ],
)
def test_folders_that_hand_out_the_host_are_refused(host: Host, admin: User, source: str) -> None:
    body = {"name": "data", "host": str(host.pk), "kind": "bind", "source": source}
    answer = api_client(admin).post(URL, body)
    assert answer.status_code == 400
    assert "source" in answer.json()["fields"]


@pytest.mark.parametrize("query", ["", "?confirm=", "?confirm=other", "?confirm=DATA"])
def test_deleting_a_volume_needs_its_name_repeated(owner: User, query: str) -> None:
    volume = make_volume(owner=owner, name="data")
    answer = api_client(owner).delete(f"{URL}{volume.pk}/{query}")
    assert answer.status_code == 400
    assert "?confirm=data" in answer.json()["message"]
    assert Volume.objects.exists()
    assert not Tombstone.objects.exists()


def test_a_deleted_volume_leaves_an_order_to_remove_its_data(owner: User) -> None:
    volume = make_volume(owner=owner, name="data")
    assert api_client(owner).delete(f"{URL}{volume.pk}/?confirm=data").status_code == 204
    stone = Tombstone.objects.get()
    assert (stone.kind, stone.object_id, stone.name) == ("volume", volume.pk, "trailer-data")


def test_the_files_of_a_bind_are_never_ordered_away(admin: User) -> None:
    bind = make_bind(owner=admin)
    before = bind.host.desired_version
    assert api_client(admin).delete(f"{URL}{bind.pk}/").status_code == 204
    assert not Tombstone.objects.exists()
    bind.host.refresh_from_db()
    assert bind.host.desired_version == before + 1


def test_a_mounted_volume_is_not_deleted_and_says_by_what(owner: User) -> None:
    volume = make_volume(owner=owner, name="data")
    workspace = make_workspace(volume.host, owner, name="lab")
    Mount.objects.create(workspace=workspace, volume=volume, target="/a")
    Mount.objects.create(workspace=workspace, volume=volume, target="/b")
    answer = api_client(owner).delete(f"{URL}{volume.pk}/?confirm=data")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert answer.json()["message"].count("lab") == 1


def test_a_volume_has_nothing_to_change(owner: User) -> None:
    volume = make_volume(owner=owner)
    assert api_client(owner).patch(f"{URL}{volume.pk}/", {"name": "x"}).status_code == 405


def test_lists_are_filtered_by_host_and_kind(host: Host, admin: User) -> None:
    make_volume(host, admin, name="a")
    make_bind(make_host(), admin, name="b")
    client = api_client(admin)
    assert [row["name"] for row in client.get(f"{URL}?kind=bind").json()["results"]] == ["b"]
    rows = client.get(f"{URL}?host={host.pk}").json()["results"]
    assert [row["name"] for row in rows] == ["a"]
    assert client.get(f"{URL}?kind=tmpfs").status_code == 400


def test_lists_take_the_same_queries_however_many_volumes_there_are(
    host: Host, owner: User, django_assert_max_num_queries: Any
) -> None:
    client = api_client(owner)
    client.get(URL)
    for _ in range(10):
        make_volume(host, owner)
    with django_assert_max_num_queries(3):
        assert client.get(URL).json()["count"] == 10
