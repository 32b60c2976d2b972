"""What browsers are told and kept from: headers, cookies, forms, redirects, errors."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.staticfiles.finders import find as find_static
from django.test import Client

from tests.factories import JsonClient, api_client, make_user
from trailer.logs import OneLineForBadRequests, logging_config

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
NAMES = (
    *("SECURE_HSTS_SECONDS", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"),
    *("SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "SESSION_COOKIE_NAME", "DEBUG"),
    *("SESSION_COOKIE_DOMAIN", "SECURE_CONTENT_TYPE_NOSNIFF", "ALLOWED_HOSTS"),
    *("CSRF_TRUSTED_ORIGINS", "TRAILER_WS_ORIGINS"),
)
OTHER_SITES = (
    *("https://evil.example/", "//evil.example/", "///evil.example", "http:///evil.example"),
    *("/\\evil.example", "\\\\evil.example", "https:evil.example", "javascript:alert(1)"),
    *("/%09/evil.example", "data:text/html,x", "https://testserver@evil.example/", "\t//evil"),
)


def told(public_url: str) -> dict[str, Any]:
    """The settings that an installation at this address starts with."""
    code = (
        "import json, django; from django.conf import settings; "
        f"print(json.dumps({{n: getattr(settings, n) for n in {NAMES!r}}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "trailer.settings",
            "TRAILER_PUBLIC_URL": public_url,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_over_https_cookies_are_secure_and_browsers_stay_with_it() -> None:
    found = told("https://trailer.example.com")
    assert found["SECURE_HSTS_SECONDS"] >= 31_536_000
    assert found["SESSION_COOKIE_SECURE"]
    assert found["CSRF_COOKIE_SECURE"]
    assert found["SESSION_COOKIE_HTTPONLY"]
    assert found["SESSION_COOKIE_SAMESITE"] == "Lax"
    # A name that browsers accept for this host alone: no other site of the domain can set it.
    assert found["SESSION_COOKIE_NAME"].startswith("__Host-")
    assert found["SESSION_COOKIE_DOMAIN"] is None
    assert not found["DEBUG"]
    assert "*" not in found["ALLOWED_HOSTS"]
    assert found["TRAILER_WS_ORIGINS"] == ["https://trailer.example.com"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://trailer.example.com"]


@pytest.fixture
def olga(settings: Any) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return make_user("olga", password=PASSWORD)


@pytest.mark.parametrize(
    "page", ["/", "/login/", "/profile/", "/api/v1/me/", "/api/docs/", "/admin/", "/x/"]
)
def test_no_page_is_framed_sniffed_or_told_to_other_sites(page: str, olga: User) -> None:
    client = Client()
    client.force_login(olga)
    headers = client.get(page).headers
    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "'unsafe-inline'" not in headers["Content-Security-Policy"].partition("style-src")[0]
    if not page.startswith("/admin"):
        assert "unsafe" not in headers["Content-Security-Policy"]


def test_a_session_changes_nothing_without_the_token_of_its_form(olga: User) -> None:
    client = JsonClient(enforce_csrf_checks=True)
    client.force_login(olga)
    for method, address in (
        ("POST", "/api/v1/tokens/"),
        ("PATCH", "/api/v1/me/"),
        ("POST", "/api/v1/sessions/end-others/"),
        ("POST", "/logout/"),
    ):
        answer = client.generic(method, address, "{}", content_type="application/json")
        assert answer.status_code == 403, address
    # A form of another site can send no JSON, and what it can send is not taken.
    plain = api_client(olga).generic(
        "POST", "/api/v1/tokens/", "name=x", content_type="application/x-www-form-urlencoded"
    )
    assert plain.status_code == 415


def test_the_sign_in_form_needs_its_token_too() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/login/", {"username": "olga", "password": PASSWORD})
    assert answer.status_code == 403


@pytest.mark.parametrize("onward", OTHER_SITES)
def test_the_sign_in_leads_to_no_other_site(onward: str, olga: User) -> None:
    body = {"username": "olga", "password": PASSWORD, "next": onward}
    place = Client().post("/login/", body).headers["Location"]
    assert place == "/" or (place.startswith("/") and place[1:2] not in ("/", "\\"))


def test_a_forged_host_is_refused() -> None:
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1@evil.example"):
        assert Client().get("/login/", HTTP_HOST=host).status_code == 400


def test_an_unexpected_error_tells_a_number_and_no_trace(
    olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret detail of /srv/trailer/settings.py")

    monkeypatch.setattr("trailer.accounts.api.views.check_present_password", broken)
    client = api_client(olga)
    client.raise_request_exception = False
    answer = client.patch("/api/v1/me/", {"email": "a@example.com"})
    assert answer.status_code == 500
    assert set(answer.json()) == {"code", "message", "fields", "request_id"}
    for word in ("secret detail", "Traceback", "RuntimeError", ".py"):
        assert word not in answer.content.decode()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SECRET_KEY", "changeme", "everybody knows"),
        ("SECRET_KEY", "django-insecure-0123456789abcdef", "everybody knows"),
        ("TRAILER_SECRET_KEYS", "not a key", "is no key"),
        ("TRAILER_ALLOWED_HOSTS", "trailer.example.com,*", "would let anybody"),
    ],
)
def test_an_unsafe_setting_keeps_the_server_from_starting(
    name: str, value: str, sentence: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.parametrize("path", ["/login/", "/admin/login/", "/api/docs/", "/admin/", "/"])
def test_every_page_names_an_icon_that_is_served(admin: User, path: str) -> None:
    client = Client()
    if "login" not in path:
        client.force_login(admin)
    page = client.get(path).content.decode()
    icon = re.search(r'<link\s+rel="icon"\s+href="([^"]+)"', page)
    assert icon, page[:600]
    assert find_static(icon[1].removeprefix("/static/")), icon[1]


def test_a_browser_that_asks_the_address_itself_for_an_icon_gets_it() -> None:
    answer = Client().get("/favicon.ico")
    assert (answer.status_code, answer["Location"]) == (302, "/static/img/favicon.svg")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/workspaces/",
        "/api/v1/nothing/",
        "/api/v1/tokens/",
        "/api/v1/schema/",
        "/api/agent/v1/state",
        "/api/agent/v1/nothing",
        "/api/nothing",
    ],
)
def test_no_cache_keeps_an_answer_of_the_api(admin: User, path: str) -> None:
    client = Client()
    for _ in range(2):
        assert client.get(path)["Cache-Control"] == "no-store"
        client.force_login(admin)


def test_no_cache_keeps_a_refusal_before_the_api_is_reached() -> None:
    wrong_host = Client().get("/api/v1/workspaces/", headers={"Host": "evil.example"})
    too_many = Client().post("/api/v1/workspaces/", {f"f{n}": "" for n in range(2000)})
    assert wrong_host.status_code == 400
    for answer in (wrong_host, too_many):
        assert 400 <= answer.status_code < 500
        assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/api/v1/workspaces/", "/healthz", "/nothing", "/admin/"])
@pytest.mark.parametrize("host", ["evil.example", "a b", "x" * 5000, "[::", "evil.example:99999"])
def test_a_wrong_host_costs_one_line_and_is_answered_in_the_usual_shape(
    path: str, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    handler.addFilter(OneLineForBadRequests())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        answer = Client(headers={"host": host}).get(path)
    finally:
        root.removeHandler(handler)
    assert answer.status_code == 400
    told = answer.json()
    assert (told["code"], told["fields"]) == ("invalid", {})
    assert "does not answer to the host name" in told["message"]
    assert told["request_id"] == answer.headers["X-Request-Id"]
    assert "evil" not in answer.content.decode()
    lines = shown.getvalue().splitlines()
    assert len(lines) == 1, lines
    assert len(shown.getvalue()) < 400
    assert {record.levelname for record in caplog.records} <= {"WARNING", "INFO"}


def test_the_products_log_has_that_filter() -> None:
    config = logging_config(level="INFO")
    assert "bad_requests" in config["handlers"]["stderr"]["filters"]
    assert config["filters"]["bad_requests"]["()"] is OneLineForBadRequests


def test_too_many_fields_cost_one_line_too(caplog: pytest.LogCaptureFixture) -> None:
    body = "&".join(f"a{number}=1" for number in range(1001))
    answer = Client().post(
        "/login/", body, content_type="application/x-www-form-urlencoded", headers={"accept": "*"}
    )
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid"
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
