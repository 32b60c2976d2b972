"""The admin pages of registries and images go through the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hosts.models import Host, Tombstone
from images.models import Image, Registry
from images.services.logs import build_log_append
from tests.admin_pages import admin_client, errors_of, messages_of, run_action, send_form
from tests.factories import make_image, make_registry, make_workspace
from trailer.sealed import unseal

if TYPE_CHECKING:
    from django.test import Client

    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
IMAGES = "/admin/images/image/"
REGISTRIES = "/admin/images/registry/"


@pytest.fixture
def client(admin: User) -> Client:
    return admin_client(admin)


def test_a_new_image_queues_its_first_build(client: Client, host: Host) -> None:
    changes = {"name": "bb", "host": str(host.pk), "reference": "busybox"}
    answer = send_form(client, f"{IMAGES}add/", changes)
    assert errors_of(answer) == {}
    image = Image.objects.get()
    assert (image.kind, image.owner.username, image.builds.count()) == ("pull", "root", 1)


def test_a_changed_dockerfile_queues_a_new_build(client: Client) -> None:
    image = make_image(kind="build")
    before = image.host.desired_version
    changes = {"dockerfile": "FROM debian\r\nRUN true\r\n"}
    assert errors_of(send_form(client, f"{IMAGES}{image.pk}/change/", changes)) == {}
    image.refresh_from_db()
    image.host.refresh_from_db()
    assert image.dockerfile == "FROM debian\nRUN true\n"
    assert (image.revision, image.builds.count(), image.status) == (2, 2, "pending")
    assert image.host.desired_version > before


def test_saving_without_a_change_builds_nothing(client: Client) -> None:
    image = make_image(kind="build", files=[{"path": "a", "content": "b"}], build_args={"A": "1"})
    assert errors_of(send_form(client, f"{IMAGES}{image.pk}/change/", {})) == {}
    image.refresh_from_db()
    assert (image.revision, image.builds.count()) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reference": "Not A Name"}, "reference"),
        ({"files": '[{"path": "../x", "content": ""}]', "reference": "busybox"}, "files"),
        ({"build_args": "{"}, "build_args"),
        ({"registry": "00000000-0000-0000-0000-000000000000"}, "registry"),
    ],
)
def test_a_refused_image_names_the_field(
    client: Client, host: Host, changes: dict[str, str], field: str
) -> None:
    changes = {"name": "bb", "host": str(host.pk), "reference": "busybox"} | changes
    assert field in errors_of(send_form(client, f"{IMAGES}add/", changes))
    assert not Image.objects.exists()


def test_build_and_cancel_are_actions_that_tell_what_was_refused(client: Client) -> None:
    done = make_image(name="done")
    busy = make_image(name="busy", status="building")
    answer = run_action(client, IMAGES, "build", done, busy)
    assert "Queued: 1." in messages_of(answer)
    assert "busy: Build 1 of image busy is under way" in messages_of(answer)
    run_action(client, IMAGES, "cancel", busy)
    assert busy.builds.get().cancel_requested is True


def test_an_image_in_use_is_not_deleted_and_a_free_one_leaves_an_order(client: Client) -> None:
    image = make_image()
    workspace = make_workspace(image=image, name="lab")
    url = f"{IMAGES}{image.pk}/delete/"
    assert "lab" in messages_of(client.post(url, {"post": "yes"}, follow=True))
    workspace.delete()
    client.post(url, {"post": "yes"})
    assert Tombstone.objects.get().object_id == image.pk


def test_a_registrys_password_is_written_and_never_shown(client: Client) -> None:
    body = {"server": "a.io", "username": "robot", "password": "s3cret value "}
    assert client.post(f"{REGISTRIES}add/", body).status_code == 302
    registry = Registry.objects.get()
    assert unseal(registry, "password_token") == "s3cret value "
    page = client.get(f"{REGISTRIES}{registry.pk}/change/").content.decode()
    assert "s3cret" not in page
    assert registry.password_token not in page


def test_an_empty_password_keeps_the_stored_one(client: Client) -> None:
    registry = make_registry(password="kept")
    body = {"server": registry.server, "username": "other", "password": ""}
    assert client.post(f"{REGISTRIES}{registry.pk}/change/", body).status_code == 302
    registry.refresh_from_db()
    assert (registry.username, unseal(registry, "password_token")) == ("other", "kept")


def test_a_build_shows_its_output(client: Client) -> None:
    build = make_image(status="failed").builds.get()
    build_log_append(build.image.host, build.pk, 0, b"step <1> failed\n")
    page = client.get(f"/admin/images/build/{build.pk}/change/").content.decode()
    assert "step &lt;1&gt; failed" in page
