"""Registry credentials over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from images.models import Registry
from tests.factories import api_client, make_image, make_registry
from trailer.sealed import unseal

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/registries/"
SECRET = "s3cret-value"


def test_a_registry_is_seen_by_its_owner_and_admins_only(
    owner: User, stranger: User, admin: User
) -> None:
    registry = make_registry(owner)
    for actor, count, status in ((owner, 1, 200), (admin, 1, 200), (stranger, 0, 404)):
        client = api_client(actor)
        assert client.get(URL).json()["count"] == count
        assert client.get(f"{URL}{registry.pk}/").status_code == status
        assert client.patch(f"{URL}{registry.pk}/", {}).status_code == status
    assert api_client(stranger).delete(f"{URL}{registry.pk}/").status_code == 404
    assert api_client().post(URL, {"server": "a.io"}).status_code == 401


def test_the_password_is_stored_encrypted_and_never_read(owner: User) -> None:
    client = api_client(owner)
    body = {"server": "Registry.Example.com:5000", "username": "robot", "password": SECRET}
    answer = client.post(URL, body)
    assert answer.status_code == 201
    assert answer.json()["server"] == "registry.example.com:5000"
    row = Registry.objects.get()
    assert SECRET not in row.password_token
    assert unseal(row, "password_token") == SECRET
    for text in (answer.content, client.get(URL).content):
        assert SECRET not in text.decode()
        assert row.password_token not in text.decode()
    assert "password" not in answer.json()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "server"),
        ({"server": "https://ghcr.io"}, "server"),
        ({"server": "a.io/path"}, "server"),
        ({"server": 5}, "server"),
        ({"server": "x" * 300}, "server"),
        ({"server": "a.io", "username": "x" * 256}, "username"),
        ({"server": "a.io", "password": 5}, "password"),
        ({"server": "a.io", "password": "x" * 9000}, "password"),
        ({"server": "a.io", "passwd": "x"}, "passwd"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    owner: User, body: dict[str, Any], field: str
) -> None:
    answer = api_client(owner).post(URL, body)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]


def test_a_new_password_reaches_the_hosts_that_use_it(owner: User) -> None:
    registry = make_registry(owner, server="a.io")
    image = make_image(owner=owner, registry=registry, reference="a.io/app")
    before = image.host.desired_version
    answer = api_client(owner).patch(f"{URL}{registry.pk}/", {"password": SECRET})
    assert answer.status_code == 200
    image.host.refresh_from_db()
    assert image.host.desired_version == before + 1
    registry.refresh_from_db()
    assert unseal(registry, "password_token") == SECRET


def test_what_is_not_sent_stays(owner: User) -> None:
    registry = make_registry(owner, password=SECRET)
    api_client(owner).patch(f"{URL}{registry.pk}/", {"username": "other"})
    registry.refresh_from_db()
    assert (registry.username, unseal(registry, "password_token")) == ("other", SECRET)


def test_a_used_credential_stays_with_its_server(owner: User) -> None:
    registry = make_registry(owner, server="a.io")
    make_image(owner=owner, name="app", registry=registry, reference="a.io/app")
    answer = api_client(owner).patch(f"{URL}{registry.pk}/", {"server": "b.io"})
    assert answer.status_code == 409
    assert "app" in answer.json()["message"]


def test_a_used_credential_is_not_deleted_and_says_by_what(owner: User) -> None:
    registry = make_registry(owner, server="a.io")
    image = make_image(owner=owner, name="app", registry=registry, reference="a.io/app")
    client = api_client(owner)
    answer = client.delete(f"{URL}{registry.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert "app" in answer.json()["message"]
    image.delete()
    assert client.delete(f"{URL}{registry.pk}/").status_code == 204


def test_lists_are_filtered_by_server(owner: User) -> None:
    make_registry(owner, server="a.io")
    make_registry(owner, server="b.io")
    rows = api_client(owner).get(f"{URL}?server=b.io").json()["results"]
    assert [row["server"] for row in rows] == ["b.io"]
