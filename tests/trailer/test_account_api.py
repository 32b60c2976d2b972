"""One's own account over REST: profile, password, sessions; and groups, for admins."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import api_client, make_group, make_token, make_user
from trailer.accounts.models import ApiToken, Session, User
from trailer.accounts.services import expired_prune, password_reset, profile_update
from trailer.context import client_address

if TYPE_CHECKING:
    from tests.factories import JsonClient

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    assert client.get("/").status_code == 200
    return client


def call(client: Client, method: str, path: str, body: Any = None) -> Any:
    text = json.dumps(body if body is not None else {})
    return client.generic(method, f"/api/v1{path}", text, content_type="application/json")


def test_everybody_reads_and_changes_their_own_account(owner: User) -> None:
    client = api_client(owner)
    owner.set_password(PASSWORD)
    owner.save(update_fields=["password"])
    proof = {"current_password": PASSWORD}
    assert client.get("/api/v1/me/").json()["username"] == "olga"
    assert client.patch("/api/v1/me/", {"email": "o@example.com", **proof}).status_code == 200
    owner.refresh_from_db()
    assert owner.email == "o@example.com"
    for body in ({"is_admin": True}, {"username": "root"}, {"email": "no", **proof}):
        assert client.patch("/api/v1/me/", body).status_code == 400
    assert api_client(owner, scope="read").patch("/api/v1/me/", {}).status_code == 403


def test_a_borrowed_session_or_token_cannot_send_the_reset_mail_elsewhere() -> None:
    eva = make_user("eva", password=PASSWORD, email="eva@example.com")
    body: dict[str, str]
    for body in ({"email": "thief@example.com"}, {"email": "", "current_password": "guess"}):
        for answer in (
            call(browser_of(eva), "PATCH", "/me/", body),
            api_client(eva, scope="admin").patch("/api/v1/me/", body),
        ):
            assert answer.status_code == 400
            assert list(answer.json()["fields"]) == ["current_password"]
    eva.refresh_from_db()
    assert eva.email == "eva@example.com"
    same = {"email": "eva@example.com"}
    assert call(browser_of(eva), "PATCH", "/me/", same).status_code == 200


def test_only_a_mail_that_an_administrator_gave_or_a_reset_proved_is_vouched_for(
    admin: User,
) -> None:
    created = api_client(admin).post("/api/v1/users/", {"username": "eva", "email": "e@x.org"})
    eva = User.objects.get(pk=created.json()["id"])
    assert eva.mail_is_vouched
    eva = profile_update(actor=eva, email="root@x.org")
    assert not eva.mail_is_vouched
    path = f"/api/v1/users/{eva.pk}/"
    assert api_client(admin).patch(path, {"email": "root@x.org"}).status_code == 200
    assert not User.objects.get(pk=eva.pk).mail_is_vouched
    assert api_client(admin).patch(path, {"email": "eva@x.org"}).status_code == 200
    assert User.objects.get(pk=eva.pk).mail_is_vouched
    eva = profile_update(actor=eva, email="own@x.org")
    assert password_reset(user=eva, password=PASSWORD).mail_is_vouched


def test_a_new_password_ends_the_other_sessions_and_keeps_this_one() -> None:
    user = make_user("eva", password=PASSWORD)
    here, there = browser_of(user), browser_of(user)
    sign_in = make_token(user, is_sign_in=True)
    body = {"current_password": PASSWORD, "password": "another long secret"}
    assert call(here, "POST", "/me/password/", body).status_code == 204
    user.refresh_from_db()
    assert user.check_password("another long secret")
    assert call(here, "GET", "/me/").status_code == 200
    assert call(there, "GET", "/me/").status_code == 401
    scripts = api_client()
    scripts.credentials(HTTP_AUTHORIZATION=f"Token {sign_in}")
    assert scripts.get("/api/v1/me/").status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"current_password": "wrong", "password": "another long secret"}, "current_password"),
        ({"current_password": PASSWORD, "password": "123"}, "password"),
        ({"current_password": PASSWORD}, "password"),
        ({}, "current_password"),
    ],
)
def test_a_bad_password_is_refused_under_its_field(body: dict[str, str], field: str) -> None:
    user = make_user("eva", password=PASSWORD)
    answer = api_client(user).post("/api/v1/me/password/", body)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_guessing_the_present_password_is_throttled() -> None:
    client = api_client(make_user(password=PASSWORD))
    body = {"current_password": "wrong", "password": "another long secret"}
    codes = [client.post("/api/v1/me/password/", body).status_code for _ in range(6)]
    assert codes == [400] * 5 + [429]


def test_sessions_are_listed_with_where_they_come_from_and_ended(stranger: User) -> None:
    owner = make_user("eva", password=PASSWORD)
    agent = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
    here = Client(headers={"user-agent": agent}, REMOTE_ADDR="10.0.0.1")
    here.post("/login/", {"username": "eva", "password": PASSWORD})
    there = browser_of(owner)
    strangers = browser_of(stranger)
    rows = call(here, "GET", "/sessions/").json()["results"]
    assert len(rows) == 2
    [own] = [row for row in rows if row["current"]]
    assert (own["address"], own["user_agent"]) == ("10.0.0.1", agent)
    keys = list(Session.objects.values_list("session_key", flat=True))
    assert not any(key in str(rows) for key in keys)

    [other] = [row for row in rows if not row["current"]]
    assert call(strangers, "DELETE", f"/sessions/{other['id']}/").status_code == 404
    assert call(here, "DELETE", f"/sessions/{other['id']}/").status_code == 204
    assert call(there, "GET", "/me/").status_code == 401
    assert call(here, "GET", "/me/").status_code == 200


def test_signing_out_everywhere_leaves_only_this_place(owner: User, stranger: User) -> None:
    here, there, other = browser_of(owner), browser_of(owner), browser_of(stranger)
    make_token(owner, is_sign_in=True)
    make_token(owner)
    answer = call(here, "POST", "/sessions/end-others/")
    assert answer.json() == {"sessions": 1, "tokens": 1}
    assert [call(client, "GET", "/me/").status_code for client in (here, there, other)] == [
        *(200, 401, 200)
    ]
    assert owner.api_tokens.get().is_sign_in is False


def test_a_session_keeps_its_name_and_tells_when_it_was_seen(owner: User) -> None:
    client = browser_of(owner)
    session = Session.objects.get(user=owner)
    old = timezone.now() - timedelta(hours=1)
    Session.objects.update(last_seen_at=old)
    client.get("/")
    again = Session.objects.get(user=owner)
    assert again.public_id == session.public_id
    assert again.last_seen_at > old
    stored = client.session
    stored["something"] = "new"
    stored.save()
    assert Session.objects.get(user=owner).public_id == session.public_id


def test_deactivating_a_user_ends_their_sessions_at_once(owner: User, admin: User) -> None:
    browser = browser_of(owner)
    boss = api_client(admin)
    assert boss.patch(f"/api/v1/users/{owner.pk}/", {"is_active": False}).status_code == 200
    assert Session.objects.filter(user=owner).count() == 0
    assert call(browser, "GET", "/me/").status_code == 401


def test_what_has_expired_is_pruned_and_named_tokens_stay(owner: User) -> None:
    past = timezone.now() - timedelta(seconds=1)
    later = timezone.now() + timedelta(days=1)
    make_token(owner, is_sign_in=True, expires_at=past)
    make_token(owner, is_sign_in=True, expires_at=later)
    make_token(owner, expires_at=past)
    browser_of(owner)
    browser_of(owner)
    Session.objects.filter(pk=Session.objects.values("pk")[:1]).update(expire_date=past)
    assert expired_prune() == 2
    kept = ApiToken.objects.filter(user=owner).values_list("is_sign_in", "expires_at")
    assert set(kept) == {(True, later), (False, past)}
    assert Session.objects.count() == 1


def test_signing_in_over_the_api_makes_a_token_that_ends() -> None:
    make_user("eva", password=PASSWORD)
    answer = Client().post(
        "/api/v1/auth/token/",
        {"username": "eva", "password": PASSWORD},
        content_type="application/json",
    )
    assert answer.status_code == 200
    token = ApiToken.objects.get()
    assert token.is_sign_in
    assert token.expires_at is not None


def test_groups_are_made_filled_renamed_and_deleted(admin: User, owner: User) -> None:
    client = api_client(admin)
    made = client.post("/api/v1/groups/", {"name": "lab", "users": ["olga"]})
    assert made.status_code == 201, made.content
    address = f"/api/v1/groups/{made.json()['id']}/"
    assert made.json()["users"] == ["olga"]
    assert client.patch(address, {"name": "team", "users": []}).json()["users"] == []
    assert client.get("/api/v1/groups/").json()["results"][0]["name"] == "team"
    assert client.patch(f"/api/v1/users/{owner.pk}/", {"groups": ["team"]}).status_code == 200
    assert client.get(address).json()["users"] == ["olga"]
    assert client.delete(address).status_code == 204
    assert owner.groups.count() == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "lab"}, "name"),
        ({"name": "x" * 151}, "name"),
        ({"name": "team", "users": ["nobody"]}, "users"),
        ({"name": "team", "users": "olga"}, "users"),
        ({"name": "team", "permissions": []}, "permissions"),
    ],
)
def test_a_bad_group_is_refused_under_its_field(
    admin: User, body: dict[str, Any], field: str
) -> None:
    make_group(name="lab")
    answer = api_client(admin).post("/api/v1/groups/", body)
    assert answer.status_code == 400
    assert field in str(answer.json()["fields"])


def test_groups_are_for_admins(owner: User) -> None:
    client: JsonClient = api_client(owner, scope="admin")
    assert client.get("/api/v1/groups/").status_code == 403
    assert client.post("/api/v1/groups/", {"name": "x"}).status_code == 403


def test_only_our_own_proxy_is_believed_about_addresses(settings: Any) -> None:
    meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "1.1.1.1, 2.2.2.2"}
    assert client_address(meta) == "10.0.0.1"
    settings.TRAILER_BEHIND_PROXY = True
    assert client_address(meta) == "2.2.2.2"
