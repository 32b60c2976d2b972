"""A forgotten password by mail: where mail is set up, and without telling who has an account."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from tests.factories import make_token, make_user
from trailer.accounts.models import ApiToken, Session, User
from trailer.audit.models import AuditEntry

pytestmark = pytest.mark.django_db
OLD, NEW = "correct horse battery", "entirely different staple"


@pytest.fixture(autouse=True)
def _with_mail(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.EMAIL_HOST_SET = True
    settings.TRAILER_PUBLIC_URL = "https://trailer.example.com"


def ask(address: str = "olga@example.com", **headers: Any) -> Any:
    return Client().post("/login/reset/", {"email": address}, **headers)


def link() -> str:
    found = re.search(r"https://trailer\.example\.com(/login/reset/\S+)", str(mail.outbox[0].body))
    assert found
    return found[1]


def choose(address: str, password: str) -> Any:
    client = Client()
    shown = client.get(address, follow=True)
    body = {"new_password1": password, "new_password2": password}
    return client.post(shown.redirect_chain[-1][0], body)


@pytest.fixture
def olga() -> User:
    return make_user("olga", password=OLD, email="olga@example.com")


def test_the_link_of_the_mail_changes_the_password_once(olga: User) -> None:
    browser = Client()
    browser.force_login(olga)
    make_token(olga, is_sign_in=True)
    assert ask().headers["Location"] == "/login/reset/sent/"
    answer = choose(link(), NEW)
    assert answer.headers["Location"] == "/login/reset/done/"
    olga.refresh_from_db()
    assert olga.check_password(NEW)
    assert not Session.objects.filter(user=olga).exists()
    assert not ApiToken.objects.exists()
    assert AuditEntry.objects.filter(action="user.password_reset").count() == 1
    again = Client().get(link(), follow=True)
    assert "This link is over" in again.content.decode()


def test_an_unknown_address_is_answered_alike_and_gets_no_mail(olga: User) -> None:
    known, unknown = ask(), ask("nobody@example.com")
    assert (known.status_code, known.headers["Location"]) == (
        unknown.status_code,
        unknown.headers["Location"],
    )
    assert len(mail.outbox) == 1


def test_the_link_leads_to_us_whatever_host_the_request_named(olga: User) -> None:
    ask(HTTP_HOST="localhost", HTTP_X_FORWARDED_HOST="evil.example")
    assert link().startswith("/login/reset/")
    assert "evil" not in str(mail.outbox[0].body)


def test_a_bad_password_is_refused_with_its_reason(olga: User) -> None:
    ask()
    assert "too short" in choose(link(), "x").content.decode()
    olga.refresh_from_db()
    assert olga.check_password(OLD)


def test_an_inactive_user_and_one_of_single_sign_on_get_no_mail() -> None:
    make_user("off", password=OLD, email="off@example.com", is_active=False)
    make_user("sso", email="sso@example.com")
    ask("off@example.com")
    ask("sso@example.com")
    assert mail.outbox == []


def test_requests_from_one_address_are_counted(olga: User) -> None:
    for number in range(5):
        ask(f"{number}@example.com")
    assert "Too many requests" in ask().content.decode()
    assert mail.outbox == []


def test_nobodys_mailbox_is_filled_from_many_addresses(olga: User) -> None:
    said = [ask(REMOTE_ADDR=f"198.51.100.{n}").content.decode() for n in range(6)]
    assert ["Too many requests" in page for page in said] == [False] * 3 + [True] * 3
    assert len(mail.outbox) == 3


def test_without_mail_there_is_no_such_page(settings: Any) -> None:
    settings.EMAIL_HOST_SET = False
    assert Client().get("/login/reset/").status_code == 404
    assert "Forgot" not in Client().get("/login/").content.decode()


def test_with_mail_the_sign_in_leads_there() -> None:
    assert "/login/reset/" in Client().get("/login/").content.decode()
