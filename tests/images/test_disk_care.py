"""Disk care: which images nothing needs, and which may not go because something does."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from images.selectors import KEPT_REVISIONS
from tests.factories import api_client, make_host, make_image
from workspaces.models import Revision
from workspaces.services import (
    workspace_create,
    workspace_delete,
    workspace_rollback,
    workspace_update,
)

if TYPE_CHECKING:
    from hosts.models import Host
    from images.models import Image
    from trailer.accounts.models import User
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"


def make(host: Host, owner: User, image: Image, name: str = "lab", **fields: Any) -> Workspace:
    data = {"name": name, "host": str(host.pk), "image": str(image.pk), **fields}
    return workspace_create(actor=owner, data=data)


def unused(host: Host, owner: User, query: str = "") -> Any:
    answer = api_client(owner).get(f"/api/v1/hosts/{host.pk}/unused-images/{query}")
    assert answer.status_code == 200
    return answer.json()


def names(host: Host, owner: User) -> list[str]:
    return [row["name"] for row in unused(host, owner)["results"]]


def edit(workspace: Workspace, owner: User, times: int) -> None:
    for number in range(times):
        data = {"description": f"edit {number} of revision {Revision.objects.count()}"}
        workspace_update(actor=owner, workspace=workspace, data=data)


def test_what_nothing_refers_to_is_listed_with_its_size(host: Host, owner: User) -> None:
    small = make_image(host, owner, "small", size_bytes=10)
    large = make_image(host, owner, "large", kind="snapshot", size_bytes=30)
    make_image(host, owner, "failed", status="failed")
    body = unused(host, owner)
    assert [row["name"] for row in body["results"]] == ["large", "small", "failed"]
    assert (body["count"], body["total_bytes"]) == (3, 40)
    row = body["results"][0]
    assert set(row) == {"id", "name", "kind", "size_bytes", "created_at"}
    assert (row["id"], row["kind"], row["size_bytes"]) == (str(large.pk), "snapshot", 30)
    assert body["results"][1]["id"] == str(small.pk)


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_what_a_workspace_uses_is_not_listed(host: Host, owner: User, state: str) -> None:
    image = make_image(host, owner)
    make(host, owner, image, desired_state=state)
    assert unused(host, owner) == {
        "count": 0,
        "next": None,
        "previous": None,
        "results": [],
        "total_bytes": 0,
    }


def test_what_a_stored_revision_names_is_not_listed_until_the_workspace_goes(
    host: Host, owner: User
) -> None:
    old, new = make_image(host, owner, "old"), make_image(host, owner, "new")
    workspace = make(host, owner, old)
    workspace_update(actor=owner, workspace=workspace, data={"image": str(new.pk)})
    edit(workspace, owner, KEPT_REVISIONS + 1)
    assert names(host, owner) == []
    workspace_delete(actor=owner, workspace=workspace)
    assert names(host, owner) == ["new", "old"]


@pytest.mark.parametrize("status", ["pending", "building"])
def test_what_is_under_way_is_not_listed(host: Host, owner: User, status: str) -> None:
    make_image(host, owner, status=status)
    assert names(host, owner) == []


def test_only_what_the_caller_may_see_on_that_host_is_listed(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    make_image(host, owner, "mine")
    make_image(host, stranger, "theirs")
    make_image(make_host(), owner, "elsewhere")
    assert names(host, owner) == ["mine"]
    assert names(host, admin) == ["mine", "theirs"]


def test_one_image_on_the_engine_is_counted_once_and_only_if_all_of_it_goes(
    host: Host, owner: User, stranger: User
) -> None:
    shared: dict[str, Any] = {"engine_id": "sha256:s", "size_bytes": 10}
    make_image(host, owner, "one", **shared)
    make_image(host, owner, "two", **shared)
    assert unused(host, owner)["total_bytes"] == 10
    make(host, stranger, make_image(host, stranger, "three", **shared))
    body = unused(host, owner)
    assert (body["count"], body["total_bytes"]) == (2, 0)


def test_the_list_is_paged_and_its_total_is_that_of_all_pages(host: Host, owner: User) -> None:
    for number in range(3):
        make_image(host, owner, f"i{number}", size_bytes=number)
    body = unused(host, owner, "?page_size=1&page=2")
    assert [row["name"] for row in body["results"]] == ["i1"]
    assert (body["count"], body["total_bytes"]) == (3, 3)


def test_the_list_takes_the_same_queries_however_much_there_is(
    host: Host, owner: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        image = make_image(host, owner)
        if number % 2:
            make(host, owner, image, name=f"lab-{number}")
    unused(host, owner)
    client = api_client(owner)
    client.get(URL)
    with django_assert_max_num_queries(5):
        client.get(f"/api/v1/hosts/{host.pk}/unused-images/")


def test_every_image_in_the_list_can_be_deleted(host: Host, owner: User) -> None:
    images = [make_image(host, owner, f"i{n}", reference=f"busybox:{n}") for n in range(4)]
    workspace = make(host, owner, images[0])
    workspace_update(actor=owner, workspace=workspace, data={"image": str(images[1].pk)})
    for row in unused(host, owner)["results"]:
        assert api_client(owner).delete(f"{URL}{row['id']}/").status_code == 204
    for image in images[:2]:
        assert api_client(owner).delete(f"{URL}{image.pk}/").status_code == 409


def test_an_image_that_a_rollback_would_need_stays_and_says_whose(host: Host, owner: User) -> None:
    old, new = make_image(host, owner, "old"), make_image(host, owner, "new")
    workspace = make(host, owner, old)
    workspace_update(actor=owner, workspace=workspace, data={"image": str(new.pk)})
    edit(workspace, owner, KEPT_REVISIONS + 1)
    answer = api_client(owner).delete(f"{URL}{old.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert "lab" in answer.json()["message"]
    workspace_rollback(actor=owner, workspace=workspace, revision=1)
    workspace.refresh_from_db()
    assert workspace.image == old


def test_of_a_stacks_service_only_the_last_revisions_count(host: Host, owner: User) -> None:
    """Its workspace is never rolled back by itself, and the stack fetches what it goes back to."""
    old, new = make_image(host, owner, "old"), make_image(host, owner, "new")
    workspace = make(host, owner, old)
    workspace_update(actor=owner, workspace=workspace, data={"image": str(new.pk)})
    edit(workspace, owner, KEPT_REVISIONS - 2)
    type(workspace).objects.update(stack=uuid.uuid4())
    assert names(host, owner) == []
    assert api_client(owner).delete(f"{URL}{old.pk}/").status_code == 409
    type(workspace).objects.update(stack=None)
    edit(workspace, owner, 1)
    type(workspace).objects.update(stack=uuid.uuid4())
    assert names(host, owner) == ["old"]
    assert api_client(owner).delete(f"{URL}{old.pk}/").status_code == 204


def test_another_workspaces_many_revisions_do_not_age_out_this_ones(
    host: Host, owner: User
) -> None:
    old, new = make_image(host, owner, "old"), make_image(host, owner, "new")
    edit(make(host, owner, new, name="busy"), owner, KEPT_REVISIONS * 2)
    workspace = make(host, owner, old)
    workspace_update(actor=owner, workspace=workspace, data={"image": str(new.pk)})
    answer = api_client(owner).delete(f"{URL}{old.pk}/")
    assert answer.status_code == 409
    assert "busy" not in answer.json()["message"]
