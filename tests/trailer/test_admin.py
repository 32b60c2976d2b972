"""The admin pages of users and tokens go through the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Group

from tests.admin_pages import admin_client, errors_of, messages_of, send_form
from tests.factories import make_network, make_token, make_user
from trailer.accounts.models import ApiToken, User
from trailer.secrets import digest

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
USERS = "/admin/accounts/user/"
TOKENS = "/admin/accounts/apitoken/"
PASSWORD = "correct horse battery"


@pytest.fixture
def client(admin: User) -> Client:
    return admin_client(admin)


def test_a_user_is_made_with_a_hashed_password(client: Client) -> None:
    group = Group.objects.create(name="lab")
    changes = {"username": "eva", "password": PASSWORD, "groups": [str(group.pk)]}
    assert errors_of(send_form(client, f"{USERS}add/", changes)) == {}
    user = User.objects.get(username="eva")
    assert user.check_password(PASSWORD)
    assert list(user.groups.all()) == [group]
    assert not user.is_superuser


def test_an_edit_keeps_the_password_unless_one_is_typed(client: Client) -> None:
    user = make_user("eva", password=PASSWORD)
    url = f"{USERS}{user.pk}/change/"
    assert errors_of(send_form(client, url, {"email": "e@example.com", "is_admin": "on"})) == {}
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
    assert (user.email, user.is_superuser, user.is_staff) == ("e@example.com", True, True)


def test_a_refused_edit_names_the_field(client: Client, admin: User) -> None:
    url = f"{USERS}{admin.pk}/change/"
    assert "password" in errors_of(send_form(client, url, {"password": "123"}))
    refused = errors_of(send_form(client, url, {}, drop=("is_admin",)))
    assert "last administrator" in str(refused)
    admin.refresh_from_db()
    assert admin.is_superuser


def test_who_owns_something_is_not_deleted(client: Client) -> None:
    user = make_network().owner
    answer = client.post(f"{USERS}{user.pk}/delete/", {"post": "yes"}, follow=True)
    assert "still owns" in messages_of(answer)
    assert User.objects.filter(pk=user.pk).exists()


def test_a_tokens_key_is_shown_once(client: Client, admin: User) -> None:
    body = {"name": "ci", "scope": "read", "expires_at_0": "", "expires_at_1": ""}
    answer = client.post(f"{TOKENS}add/", body, follow=True)
    key = messages_of(answer).partition("shown only now: ")[2].split()[0]
    assert ApiToken.objects.get(user=admin).digest == digest(key)


def test_anothers_tokens_are_not_there(client: Client) -> None:
    other = make_user("eva")
    make_token(other)
    other.api_tokens.update(name="evas-laptop")
    token = other.api_tokens.get()
    assert token.name not in client.get(TOKENS).content.decode().split("<tbody")[-1]
    client.post(f"{TOKENS}{token.pk}/delete/", {"post": "yes"})
    assert ApiToken.objects.filter(pk=token.pk).exists()
