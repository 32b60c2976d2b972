"""API tokens: listed, named, expired and revoked by their user alone."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from tests.factories import api_client, make_token, make_user
from trailer.accounts.models import ApiToken

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/tokens/"


def _with(key: str) -> Any:
    client = api_client()
    client.credentials(HTTP_AUTHORIZATION=f"Token {key}")
    return client


def test_nobody_sees_anothers_tokens_not_even_an_admin(
    owner: User, stranger: User, admin: User
) -> None:
    make_token(owner)
    token = owner.api_tokens.get()
    for actor in (stranger, admin):
        client = api_client(actor)
        assert client.get(URL).json()["count"] == 1
        assert client.get(f"{URL}{token.pk}/").status_code == 404
        assert client.patch(f"{URL}{token.pk}/", {"name": "x"}).status_code == 404
        assert client.delete(f"{URL}{token.pk}/").status_code == 404
    assert api_client().get(URL).status_code == 401


def test_the_key_is_only_in_the_answer_that_makes_it(owner: User) -> None:
    client = api_client(owner)
    answer = client.post(URL, {"name": "ci", "scope": "read"})
    assert answer.status_code == 201
    key = answer.json()["key"]
    token = ApiToken.objects.get(name="ci")
    assert key not in token.digest
    assert key not in client.get(URL).content.decode()
    assert "key" not in client.get(f"{URL}{token.pk}/").json()
    assert _with(key).get(URL).status_code == 200
    assert _with(key).post(URL, {"name": "x"}).status_code == 403


def test_a_token_can_not_make_a_wider_one(owner: User) -> None:
    client = api_client(owner, scope="write")
    assert client.post(URL, {"name": "x", "scope": "admin"}).status_code == 403
    assert client.post(URL, {"name": "x", "scope": "write"}).status_code == 201
    wide = api_client(owner, scope="admin")
    assert wide.post(URL, {"name": "x", "scope": "admin"}).status_code == 201


def test_an_expired_token_is_refused(owner: User) -> None:
    key = make_token(owner, expires_at=timezone.now() - timedelta(seconds=1))
    answer = _with(key).get(URL)
    assert answer.status_code == 401
    assert "expired" in answer.json()["message"]


def test_a_revoked_token_is_refused_at_once(owner: User) -> None:
    key = make_token(owner)
    token = owner.api_tokens.get()
    assert api_client(owner).delete(f"{URL}{token.pk}/").status_code == 204
    assert _with(key).get(URL).status_code == 401


def test_a_deactivated_users_token_is_refused(owner: User) -> None:
    client = api_client(owner)
    owner.is_active = False
    owner.save(update_fields=["is_active"])
    assert client.get(URL).status_code == 401


def test_a_token_is_renamed_and_given_an_end(owner: User) -> None:
    client = api_client(owner)
    token = owner.api_tokens.get()
    later = timezone.now() + timedelta(days=1)
    body = {"name": "laptop", "expires_at": later.isoformat()}
    assert client.patch(f"{URL}{token.pk}/", body).status_code == 200
    token.refresh_from_db()
    assert (token.name, token.expires_at) == ("laptop", later)
    assert client.patch(f"{URL}{token.pk}/", {"expires_at": None}).json()["expires_at"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "x", "scope": "root"}, "scope"),
        ({"name": "x", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "x", "expires_at": "soon"}, "expires_at"),
        ({"name": "x", "expires_at": "9999-12-31T23:59:59-12:00"}, "expires_at"),
        ({"name": "x", "expires_at": 5}, "expires_at"),
        ({"name": "x", "user": "root"}, "user"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    owner: User, body: dict[str, Any], field: str
) -> None:
    answer = api_client(owner).post(URL, body)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]


def test_the_last_use_is_remembered() -> None:
    user = make_user()
    api_client(user).get(URL)
    assert user.api_tokens.get().last_used_at is not None


def test_a_token_that_asks_too_often_waits_where_a_limit_is_set(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All within one window, however slow the machine is.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    user = make_user()
    busy, other = api_client(user), api_client(user)
    assert {busy.get(URL).status_code for _ in range(25)} == {200}
    settings.TRAILER_API_RATE = 2
    answers = [busy.get(URL) for _ in range(45)]
    refused = answers[-1]
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 1 <= int(refused.headers["Retry-After"]) <= 11
    assert [answer.status_code for answer in answers[:20]] == [200] * 20
    assert other.get(URL).status_code == 200
