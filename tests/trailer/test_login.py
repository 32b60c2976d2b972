"""Signing in over REST: a token for a password, and guesses counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests.factories import api_client, make_user
from trailer.accounts.models import ApiToken

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db
URL = "/api/v1/auth/token/"
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _no_attempts_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def _login(password: str = PASSWORD, username: str = "olga", address: str = "10.0.0.1") -> Any:
    body = {"username": username, "password": password}
    return api_client().post(URL, body, REMOTE_ADDR=address)


def test_a_password_gets_a_token_that_works() -> None:
    make_user("olga", password=PASSWORD)
    answer = _login()
    assert answer.status_code == 200
    key = answer.json()["token"]
    assert not ApiToken.objects.filter(digest=key).exists()
    client = api_client()
    client.credentials(HTTP_AUTHORIZATION=f"Token {key}")
    assert client.get("/api/v1/tokens/").status_code == 200


@pytest.mark.parametrize(
    ("username", "password"), [("olga", "wrong"), ("nobody", PASSWORD), ("olga", " " + PASSWORD)]
)
def test_a_wrong_name_and_a_wrong_password_look_the_same(username: str, password: str) -> None:
    make_user("olga", password=PASSWORD)
    answer = _login(password, username)
    assert answer.status_code == 401
    assert "do not match" in answer.json()["message"]
    assert not ApiToken.objects.exists()


def test_an_inactive_user_gets_no_token() -> None:
    make_user("olga", password=PASSWORD, is_active=False)
    assert _login().status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"username": "olga"},
        {"username": 5, "password": "x"},
        {"username": "a", "password": []},
    ],
)
def test_bad_input_is_refused(body: dict[str, Any]) -> None:
    answer = api_client().post(URL, body)
    assert answer.status_code == 400
    assert answer.json()["fields"]


def test_after_five_failures_even_the_right_password_must_wait() -> None:
    make_user("olga", password=PASSWORD)
    for _ in range(5):
        assert _login("wrong").status_code == 401
    answer = _login()
    assert (answer.status_code, answer.json()["code"]) == (429, "throttled")
    assert 1 <= int(answer.headers["Retry-After"]) <= 61
    assert _login(address="10.0.0.2").status_code == 200


def test_a_success_forgets_the_failures_before_it() -> None:
    make_user("olga", password=PASSWORD)
    for _ in range(3):
        for _ in range(4):
            _login("wrong")
        assert _login().status_code == 200


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_the_pages_sign_in_counts_the_same_guesses(page: str) -> None:
    make_user("olga", password=PASSWORD, is_staff=True)
    for _ in range(5):
        _login("wrong", address="127.0.0.1")
    client = Client()
    answer = client.post(page, {"username": "olga", "password": PASSWORD})
    assert answer.status_code == 200
    assert "Too many failed sign-ins" in answer.content.decode()
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize(("is_staff", "signed_in"), [(True, True), (False, False)])
def test_the_admin_lets_only_staff_in(is_staff: bool, signed_in: bool) -> None:
    make_user("olga", password=PASSWORD, is_staff=is_staff)
    client = Client()
    client.post("/admin/login/", {"username": "olga", "password": PASSWORD})
    assert ("_auth_user_id" in client.session) == signed_in
