"""Images over REST: creating, changing, listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from images.models import Build, Image
from tests.factories import (
    api_client,
    make_build,
    make_host,
    make_image,
    make_registry,
)

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"


def test_an_image_is_seen_by_its_owner_and_admins_only(
    owner: User, stranger: User, admin: User
) -> None:
    image = make_image(owner=owner)
    build = image.builds.get()
    for actor, count, status in ((owner, 1, 200), (admin, 1, 200), (stranger, 0, 404)):
        client = api_client(actor)
        assert client.get(URL).json()["count"] == count
        assert client.get(f"{URL}{image.pk}/").status_code == status
        assert client.get(f"{URL}{image.pk}/builds/").status_code == status
        assert client.get(f"/api/v1/builds/{build.pk}/").status_code == status
        assert client.get(f"/api/v1/builds/{build.pk}/log/").status_code == status
        assert client.patch(f"{URL}{image.pk}/", {}).status_code == status
    client = api_client(stranger)
    for action in ("build", "cancel"):
        assert client.post(f"{URL}{image.pk}/{action}/").status_code == 404
    assert client.delete(f"{URL}{image.pk}/").status_code == 404
    assert api_client().get(f"{URL}{image.pk}/").status_code == 401


def test_a_new_pull_queues_its_first_build(host: Host, owner: User) -> None:
    before = host.desired_version
    body = {"name": "bb", "host": str(host.pk), "kind": "pull", "reference": "busybox"}
    answer = api_client(owner).post(URL, body)
    assert answer.status_code == 201
    found = answer.json()
    build = Build.objects.get()
    assert found["current_build"] == str(build.pk)
    assert (build.number, build.trigger, build.actor) == (1, "created", owner)
    assert (found["status"], found["reference"], found["revision"]) == ("pending", "busybox", 1)
    assert found["allowed_actions"] == ["cancel"]
    host.refresh_from_db()
    assert host.desired_version == before + 1


def test_a_build_keeps_all_it_is_made_from(host: Host, owner: User) -> None:
    body = {
        "name": "tool",
        "host": str(host.pk),
        "kind": "build",
        "dockerfile": "FROM busybox\nARG V\nCOPY app/start.sh /\n",
        "files": [{"path": "app/start.sh", "content": "#!/bin/sh\n"}],
        "build_args": {"V": "1"},
        "target": "final",
        "pull_base": True,
    }
    answer = api_client(owner).post(URL, body)
    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in body} == body


BUILD = {"kind": "build", "dockerfile": "FROM busybox", "reference": ""}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "taken"}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": "a\tb"}, "name"),
        ({"host": "x"}, "host"),
        ({"kind": "import"}, "kind"),
        ({"kind": "snapshot"}, "kind"),
        ({"reference": ""}, "reference"),
        ({"reference": "Bad Name"}, "reference"),
        ({"reference": "x" * 256}, "reference"),
        ({"reference": 7}, "reference"),
        ({"dockerfile": "FROM x"}, "dockerfile"),
        ({"files": [{"path": "a", "content": "b"}]}, "files"),
        ({"push": True}, "push"),
        ({"update_policy": "sometimes"}, "update_policy"),
        ({"registry": "x"}, "registry"),
        ({"registry": "00000000-0000-0000-0000-000000000000"}, "registry"),
        ({"enabled": "true"}, "enabled"),
        ({"status": "finished"}, "status"),
        ({"digest": "sha256:1"}, "digest"),
        (BUILD | {"dockerfile": ""}, "dockerfile"),
        (BUILD | {"dockerfile": "  \n"}, "dockerfile"),
        (BUILD | {"dockerfile": "F" * (1024 * 1024 + 1)}, "dockerfile"),
        (BUILD | {"files": "x"}, "files"),
        (BUILD | {"files": [{"path": "a"}]}, "files.0.content"),
        (BUILD | {"files": [{"path": "a", "content": "b", "mode": 7}]}, "files.0.mode"),
        (BUILD | {"files": [{"path": "../a", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "/etc/a", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "a//b", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "a\\b", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": ".", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "Dockerfile", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "start.sh\n", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "app/\u202ehs.trats", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "app /start.sh", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "\u200bstart.sh", "content": ""}]}, "files.0.path"),
        (BUILD | {"files": [{"path": "a", "content": "x" * 70_000}]}, "files.0.content"),
        (BUILD | {"files": [{"path": "a", "content": ""}] * 2}, "files.1.path"),
        (BUILD | {"files": [{"path": "a", "content": ""}] * 257}, "files"),
        (BUILD | {"build_args": ["A"]}, "build_args"),
        (BUILD | {"build_args": {"A": 5}}, "build_args.A"),
        (BUILD | {"build_args": {"A B": "x"}}, "build_args"),
        (BUILD | {"build_args": {"": "x"}}, "build_args"),
        (BUILD | {"build_args": {f"A{n}": "" for n in range(257)}}, "build_args"),
        (BUILD | {"target": "a b"}, "target"),
        (BUILD | {"push": True}, "reference"),
        (BUILD | {"push": True, "reference": f"a@sha256:{'0' * 64}"}, "reference"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    host: Host, owner: User, fields: dict[str, Any], field: str
) -> None:
    make_image(host, owner, name="taken")
    body = {"name": "img", "host": str(host.pk), "kind": "pull", "reference": "busybox"}
    answer = api_client(owner).post(URL, body | fields)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]
    assert Image.objects.count() == 1


def test_a_credential_goes_only_to_its_own_server(host: Host, owner: User) -> None:
    registry = make_registry(owner, server="a.io")
    body = {"name": "x", "host": str(host.pk), "registry": str(registry.pk)}
    client = api_client(owner)
    answer = client.post(URL, body | {"reference": "b.io/app"})
    assert answer.status_code == 400
    assert "registry" in answer.json()["fields"]
    assert client.post(URL, body | {"reference": "a.io/app"}).status_code == 201


def test_a_credential_may_be_for_what_an_image_is_built_from(host: Host, owner: User) -> None:
    registry = make_registry(owner, server="a.io")
    body = {"name": "x", "host": str(host.pk), "registry": str(registry.pk)}
    build = {"kind": "build", "dockerfile": "FROM a.io/base"}
    client = api_client(owner)
    assert client.post(URL, body | build).status_code == 201
    elsewhere = {"name": "y", "reference": "b.io/app:1", "push": True}
    answer = client.post(URL, body | build | elsewhere)
    assert answer.status_code == 400
    assert "registry" in answer.json()["fields"]


def test_a_strangers_credential_is_not_there(host: Host, owner: User, stranger: User) -> None:
    registry = make_registry(stranger, server="a.io")
    image = make_image(host, owner, reference="a.io/app")
    client = api_client(owner)
    body = {"registry": str(registry.pk)}
    answer = client.post(URL, body | {"name": "x", "host": str(host.pk), "reference": "a.io/b"})
    assert answer.status_code == 400
    assert client.patch(f"{URL}{image.pk}/", body).status_code == 400


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("pull", {"reference": "busybox:2"}),
        ("build", {"dockerfile": "FROM debian"}),
        ("build", {"files": [{"path": "a", "content": "b"}]}),
        ("build", {"build_args": {"A": "1"}}),
        ("build", {"target": "t"}),
        ("build", {"pull_base": True}),
    ],
)
def test_changing_what_it_is_made_from_queues_a_new_build(
    owner: User, kind: str, change: dict[str, Any]
) -> None:
    image = make_image(owner=owner, kind=kind)
    body = api_client(owner).patch(f"{URL}{image.pk}/", change).json()
    assert (body["status"], body["revision"]) == ("pending", 2)
    newest = image.builds.first()
    assert newest is not None
    assert (newest.number, newest.trigger, str(newest.pk)) == (2, "changed", body["current_build"])


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"update_policy": "always"}, {"enabled": False}]
)
def test_other_changes_queue_nothing(owner: User, change: dict[str, Any]) -> None:
    image = make_image(owner=owner)
    before = image.host.desired_version
    body = api_client(owner).patch(f"{URL}{image.pk}/", change).json()
    assert (body["status"], body["revision"], image.builds.count()) == ("finished", 2, 1)
    image.host.refresh_from_db()
    assert image.host.desired_version == before + 1


def test_a_change_to_the_same_value_changes_nothing(owner: User) -> None:
    image = make_image(owner=owner)
    body = api_client(owner).patch(f"{URL}{image.pk}/", {"reference": image.reference}).json()
    assert (body["revision"], image.builds.count()) == (1, 1)


@pytest.mark.parametrize("name", ["host", "kind", "status"])
def test_what_is_fixed_can_not_be_changed(owner: User, name: str) -> None:
    image = make_image(owner=owner)
    answer = api_client(owner).patch(f"{URL}{image.pk}/", {name: "x"})
    assert answer.status_code == 400
    assert name in answer.json()["fields"]


def test_a_change_while_building_overtakes_the_build(owner: User) -> None:
    image = make_image(owner=owner, status="pending")
    api_client(owner).patch(f"{URL}{image.pk}/", {"reference": "busybox:2"})
    first, second = image.builds.order_by("number")
    assert (first.status, first.message) == ("cancelled", "Overtaken by build 2.")
    assert second.status == "pending"
    Build.objects.filter(pk=second.pk).update(status="building")
    api_client(owner).patch(f"{URL}{image.pk}/", {"reference": "busybox:3"})
    second.refresh_from_db()
    assert (second.status, second.cancel_requested) == ("building", True)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("kind=build", ["b"]),
        ("status=failed", ["b"]),
        ("name=a", ["a"]),
        ("search=busybox", ["a"]),
        ("ordering=-name", ["b", "a"]),
    ],
)
def test_lists_are_filtered(host: Host, owner: User, query: str, names: list[str]) -> None:
    make_image(host, owner, name="a")
    make_image(make_host(), owner, name="b", kind="build", status="failed")
    rows = api_client(owner).get(f"{URL}?{query}").json()["results"]
    assert [row["name"] for row in rows] == names


@pytest.mark.parametrize("query", ["host=x", "registry=x", "kind=x", "status=x", "enabled=x"])
def test_malformed_filters_are_refused(owner: User, query: str) -> None:
    assert api_client(owner).get(f"{URL}?{query}").status_code == 400


def test_lists_take_the_same_queries_however_many_images_there_are(
    host: Host, owner: User, django_assert_max_num_queries: Any
) -> None:
    client = api_client(owner)
    client.get(URL)
    for _ in range(10):
        make_build(make_image(host, owner))
    with django_assert_max_num_queries(4):
        body = client.get(URL).json()
    newest = {str(build.pk) for build in Build.objects.filter(number=2)}
    assert {row["current_build"] for row in body["results"]} == newest
