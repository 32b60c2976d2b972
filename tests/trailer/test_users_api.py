"""Users over REST: for admins, with at least one admin left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group

from tests.factories import api_client, make_admin, make_network, make_user
from trailer.accounts.models import User

if TYPE_CHECKING:
    from tests.factories import JsonClient

pytestmark = pytest.mark.django_db
URL = "/api/v1/users/"
PASSWORD = "correct horse battery"


@pytest.fixture
def client(admin: User) -> JsonClient:
    return api_client(admin, scope="admin")


def test_only_admins_get_there(owner: User, admin: User) -> None:
    user_client = api_client(owner, scope="admin")
    for url in (URL, f"{URL}{admin.pk}/", f"{URL}{owner.pk}/"):
        assert user_client.get(url).status_code == 403
    assert user_client.post(URL, {"username": "x"}).status_code == 403
    assert user_client.patch(f"{URL}{owner.pk}/", {"is_admin": True}).status_code == 403
    assert user_client.delete(f"{URL}{admin.pk}/").status_code == 403
    assert api_client().get(URL).status_code == 401
    assert api_client(admin, scope="write").get(URL).status_code == 403


def test_a_user_is_made_and_can_sign_in(client: JsonClient) -> None:
    Group.objects.create(name="lab")
    body = {"username": "eva", "email": "e@example.com", "password": PASSWORD, "groups": ["lab"]}
    answer = client.post(URL, body)
    assert answer.status_code == 201
    assert answer.json() | {"id": "", "date_joined": "", "last_login": None} == {
        "id": "",
        "username": "eva",
        "email": "e@example.com",
        "is_admin": False,
        "is_active": True,
        "groups": ["lab"],
        "date_joined": "",
        "last_login": None,
    }
    assert User.objects.get(username="eva").check_password(PASSWORD)
    assert PASSWORD not in answer.content.decode()


def test_an_admin_may_use_the_admin_pages(client: JsonClient) -> None:
    client.post(URL, {"username": "eva", "is_admin": True})
    user = User.objects.get(username="eva")
    assert (user.is_superuser, user.is_staff) == (True, True)
    assert not user.has_usable_password()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "username"),
        ({"username": ""}, "username"),
        ({"username": "a b"}, "username"),
        ({"username": "olga"}, "username"),
        ({"username": "x" * 151}, "username"),
        ({"username": "eva", "email": "no"}, "email"),
        ({"username": "eva", "password": "123"}, "password"),
        ({"username": "eva", "password": "password"}, "password"),
        ({"username": "eva", "is_admin": "yes"}, "is_admin"),
        ({"username": "eva", "groups": ["none"]}, "groups"),
        ({"username": "eva", "groups": "none"}, "groups"),
        ({"username": "eva", "is_superuser": True}, "is_superuser"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    client: JsonClient, owner: User, body: dict[str, Any], field: str
) -> None:
    answer = client.post(URL, body)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]
    assert User.objects.count() == 2


def test_the_last_admin_stays_one(client: JsonClient, admin: User) -> None:
    for change in ({"is_admin": False}, {"is_active": False}):
        answer = client.patch(f"{URL}{admin.pk}/", change)
        assert answer.status_code == 409
        assert "last administrator" in answer.json()["message"]
    make_admin("second")
    assert client.patch(f"{URL}{admin.pk}/", {"is_admin": False}).status_code == 200


def test_nobody_deletes_themselves(client: JsonClient, admin: User) -> None:
    make_admin("second")
    assert client.delete(f"{URL}{admin.pk}/").status_code == 409
    assert User.objects.filter(pk=admin.pk).exists()


def test_who_owns_something_is_not_deleted_and_says_what(client: JsonClient) -> None:
    user = make_user("eva")
    network = make_network(owner=user)
    answer = client.delete(f"{URL}{user.pk}/")
    assert answer.status_code == 409
    assert "still owns 1 network." in answer.json()["message"]
    network.delete()
    assert client.delete(f"{URL}{user.pk}/").status_code == 204


def test_a_password_is_changed_and_the_rest_stays(client: JsonClient) -> None:
    user = make_user("eva", password="something old and long", email="e@example.com")
    assert client.patch(f"{URL}{user.pk}/", {"password": PASSWORD}).status_code == 200
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
    assert user.email == "e@example.com"


def test_lists_are_filtered_and_take_the_same_queries(
    client: JsonClient, django_assert_max_num_queries: Any
) -> None:
    client.get(URL)
    for number in range(6):
        make_user(f"user-{number}", is_active=number > 0)
    with django_assert_max_num_queries(4):
        assert client.get(URL).json()["count"] == 7
    rows = client.get(f"{URL}?is_active=false").json()["results"]
    assert [row["username"] for row in rows] == ["user-0"]
    assert client.get(f"{URL}?is_admin=maybe").status_code == 400
