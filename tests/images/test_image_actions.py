"""Images over REST: building again, cancelling, deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.protocol import naming
from hosts.models import Host, Tombstone
from tests.factories import (
    api_client,
    make_image,
    make_silent_host,
    make_workspace,
)

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"


def test_building_again_keeps_the_history(owner: User) -> None:
    image = make_image(owner=owner, status="failed")
    client = api_client(owner)
    answer = client.post(f"{URL}{image.pk}/build/")
    assert answer.status_code == 202
    assert answer.json()["status"] == "pending"
    rows = client.get(f"{URL}{image.pk}/builds/").json()["results"]
    assert [(row["number"], row["status"]) for row in rows] == [(2, "pending"), (1, "failed")]
    assert (rows[0]["trigger"], rows[0]["actor"]) == ("requested", "olga")


@pytest.mark.parametrize("status", ["pending", "building"])
def test_one_build_at_a_time(owner: User, status: str) -> None:
    image = make_image(owner=owner, status=status)
    answer = api_client(owner).post(f"{URL}{image.pk}/build/")
    assert (answer.status_code, answer.json()["code"]) == (409, "under_way")
    assert image.builds.count() == 1


def test_a_disabled_image_is_not_built(owner: User) -> None:
    image = make_image(owner=owner, enabled=False)
    assert api_client(owner).post(f"{URL}{image.pk}/build/").status_code == 409


def test_a_cancel_is_asked_for_and_waits_for_the_agent(owner: User) -> None:
    image = make_image(owner=owner, status="building")
    before = image.host.desired_version
    answer = api_client(owner).post(f"{URL}{image.pk}/cancel/")
    assert (answer.status_code, answer.json()["status"]) == (202, "building")
    assert image.builds.get().cancel_requested is True
    image.host.refresh_from_db()
    assert image.host.desired_version == before + 1


def test_a_cancel_that_no_agent_can_confirm_counts_at_once(owner: User) -> None:
    image = make_image(make_silent_host(), owner, status="pending")
    answer = api_client(owner).post(f"{URL}{image.pk}/cancel/")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    assert image.builds.get().status == "cancelled"


@pytest.mark.parametrize("status", ["finished", "failed", "cancelled"])
def test_there_is_nothing_to_cancel_when_nothing_runs(owner: User, status: str) -> None:
    image = make_image(owner=owner, status=status)
    answer = api_client(owner).post(f"{URL}{image.pk}/cancel/")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_under_way")


@pytest.mark.parametrize("method", ["patch", "delete"])
def test_an_outdated_revision_is_refused(owner: User, method: str) -> None:
    image = make_image(owner=owner, revision=3)
    call = getattr(api_client(owner), method)
    answer = call(f"{URL}{image.pk}/", {}, headers={"If-Match": "2"})
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")


@pytest.mark.parametrize("action", ["build", "cancel"])
def test_actions_take_no_fields_and_heed_the_revision(owner: User, action: str) -> None:
    image = make_image(owner=owner)
    client = api_client(owner)
    url = f"{URL}{image.pk}/{action}/"
    assert client.post(url, {"force": True}).status_code == 400
    assert client.post(url, headers={"If-Match": "9"}).status_code == 409


def test_an_image_in_use_is_not_deleted_and_says_by_what(owner: User) -> None:
    image = make_image(owner=owner)
    make_workspace(image.host, owner, name="lab", image=image)
    answer = api_client(owner).delete(f"{URL}{image.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert "lab" in answer.json()["message"]


@pytest.mark.parametrize("kind", ["pull", "build"])
def test_a_deleted_image_leaves_an_order_under_its_engine_name(owner: User, kind: str) -> None:
    image = make_image(owner=owner, kind=kind)
    ref = "busybox:latest" if kind == "pull" else naming.build_ref(str(image.pk))
    assert api_client(owner).delete(f"{URL}{image.pk}/").status_code == 204
    stone = Tombstone.objects.get()
    assert (stone.kind, stone.object_id, stone.name) == ("image", image.pk, ref)


def test_a_reference_that_another_image_needs_is_not_ordered_away(host: Host, owner: User) -> None:
    image = make_image(host, owner, reference="busybox")
    make_image(host, owner, reference="docker.io/library/busybox:latest")
    assert api_client(owner).delete(f"{URL}{image.pk}/").status_code == 204
    assert not Tombstone.objects.exists()
