"""Signing in over REST: a token for a password, and guesses counted."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from tests.factories import api_client, make_user
from trailer.accounts.attempts import neighbourhood
from trailer.accounts.models import ApiToken

pytestmark = pytest.mark.django_db
URL = "/api/v1/auth/token/"
PASSWORD = "correct horse battery"


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


def _attack(username: str = "olga") -> list[int]:
    """One guess from each of many addresses."""
    return [_login("wrong", username, f"198.51.100.{n}").status_code for n in range(30)]


@pytest.mark.parametrize("username", ["olga", "nobody"])
def test_guesses_from_many_addresses_are_slowed_down_together(username: str) -> None:
    make_user("olga", password=PASSWORD)
    answers = _attack(username)
    # Twenty are free, the next has the first turn; whether the name is somebody's is not told.
    assert answers[:21] == [401] * 21
    assert answers[-1] == 429
    refused = _login("wrong", username, "203.0.113.1")
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    # Another name is not touched.
    assert _login("wrong", "ivan", "203.0.113.1").status_code == 401


def test_an_attack_keeps_nobody_out_of_where_they_were_before() -> None:
    make_user("olga", password=PASSWORD)
    assert _login(address="10.0.0.9").status_code == 200
    browser = Client()
    form = {"username": "olga", "password": PASSWORD}
    assert browser.post("/login/", form, REMOTE_ADDR="10.0.0.8").status_code == 302
    browser.post("/logout/")
    _attack()
    assert _login(address="10.0.0.7").status_code == 429
    assert _login(address="10.0.0.9").status_code == 200
    # Elsewhere by now, but with the cookie of a browser that she used.
    assert browser.post("/login/", form, REMOTE_ADDR="10.0.0.7").status_code == 302
    stranger = Client()
    stranger.cookies["trailer-device"] = "forged:1:1"
    assert stranger.post("/login/", form, REMOTE_ADDR="10.0.0.6").status_code == 200


def test_a_carried_off_cookie_opens_no_way_around_the_limits() -> None:
    make_user("olga", password=PASSWORD)
    browser = Client()
    right, wrong = ({"username": "olga", "password": word} for word in (PASSWORD, "wrong"))
    browser.post("/login/", right)
    browser.post("/logout/")
    _attack()
    pages = [
        browser.post("/login/", wrong, REMOTE_ADDR=f"203.0.113.{n}").content.decode()
        for n in range(6)
    ]
    assert ["Too many" in page for page in pages] == [False] * 5 + [True]


def test_the_pause_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    make_user("olga", password=PASSWORD)
    _attack()
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert _login(address="10.0.0.7").status_code == 200


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
    ],
)
def test_a_network_of_ipv6_addresses_is_one_guesser(one: str, other: str, same: bool) -> None:
    assert (neighbourhood(one) == neighbourhood(other)) is same


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
