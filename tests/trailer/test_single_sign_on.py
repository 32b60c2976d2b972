"""Single sign-on against a provider on a local port: accounts, groups, and forged answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.core.cache import cache, caches
from django.test import Client

from tests.factories import make_admin, make_group, make_user
from tests.trailer.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider
from trailer.accounts.models import ExternalIdentity, User
from trailer.accounts.oidc import provider as described
from trailer.audit.models import AuditEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.stop()


@pytest.fixture
def provider(running: Provider, settings: Any) -> Iterator[Provider]:
    settings.TRAILER_OIDC_ISSUER = running.issuer
    settings.TRAILER_OIDC_NAME = "Example"
    settings.OIDC_RP_CLIENT_ID = CLIENT_ID
    settings.OIDC_RP_CLIENT_SECRET = CLIENT_SECRET
    settings.TRAILER_OIDC_GROUPS = {"engineers": "lab", "ops": "operators"}
    settings.TRAILER_OIDC_ADMIN_GROUP = "admins"
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        "trailer.accounts.oidc.SingleSignOn",
    ]
    running.signs_with = running.key
    caches["process"].clear()
    cache.clear()
    yield running
    caches["process"].clear()
    cache.clear()


def away(client: Client, onward: str = "") -> dict[str, list[str]]:
    answer = client.get("/login/sso/", {"next": onward} if onward else {})
    return parse_qs(urlsplit(answer.headers["Location"]).query)


def sign_in(provider: Provider, client: Client | None = None, **claims: Any) -> Client:
    client = client or Client()
    asked = away(client)
    provider.agree("code-1", asked, **{"preferred_username": "eva", **claims})
    client.get("/login/sso/callback/", {"code": "code-1", "state": asked["state"][0]})
    return client


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_the_first_sign_in_makes_an_account_and_the_next_finds_it(provider: Provider) -> None:
    assert is_in(sign_in(provider, email="eva@example.com"))
    assert is_in(sign_in(provider, preferred_username="renamed", email="new@example.com"))
    user = User.objects.get()
    assert (user.username, user.has_usable_password(), user.is_superuser) == ("eva", False, False)
    assert ExternalIdentity.objects.get().subject == "subject-1"
    actions = list(AuditEntry.objects.order_by("at").values_list("action", flat=True))
    assert actions == ["user.create", "user.login", "user.login"]


def test_the_request_uses_a_state_a_nonce_and_a_challenge(provider: Provider) -> None:
    asked = away(Client())
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) >= 32
    assert len(asked["nonce"][0]) >= 32
    assert asked["redirect_uri"] == ["http://testserver/login/sso/callback/"]
    sign_in(provider)
    assert len(provider.requests[-1]["code_verifier"][0]) >= 43


def test_it_leads_on_to_our_pages_only(provider: Provider) -> None:
    for onward, place in (("/images/", "/images/"), ("https://evil.example/", "/")):
        client = Client()
        asked = away(client, onward)
        provider.agree("code-1", asked)
        back = client.get("/login/sso/callback/", {"code": "code-1", "state": asked["state"][0]})
        assert back.headers["Location"] == place


def test_groups_follow_the_provider_and_others_stay(provider: Provider) -> None:
    client = sign_in(provider, groups=["engineers", "unknown"])
    user = User.objects.get()
    own = make_group(user, name="own")
    assert set(user.groups.values_list("name", flat=True)) == {"lab", "own"}
    sign_in(provider, client, groups=["ops"])
    assert set(user.groups.values_list("name", flat=True)) == {"operators", own.name}
    assert AuditEntry.objects.filter(action="user.update").count() == 2


def test_the_admin_group_gives_and_takes_the_right_but_not_from_the_last(
    provider: Provider,
) -> None:
    sign_in(provider, groups=["admins"])
    assert User.objects.get().is_superuser
    sign_in(provider, groups=[])
    assert User.objects.get().is_superuser
    make_admin()
    sign_in(provider, groups=[])
    assert not User.objects.get(username="eva").is_superuser


def test_a_name_that_is_taken_stays_with_its_owner(provider: Provider) -> None:
    eva = make_user("eva", email="eva@example.com")
    sign_in(provider, email="eva@example.com", email_verified=True)
    assert not eva.identities.exists()
    assert User.objects.filter(username="eva-2").exists()


@pytest.mark.parametrize(
    ("verified", "vouched", "linked"),
    [(True, True, True), (False, True, False), (None, True, False), (True, False, False)],
)
def test_a_mail_links_an_account_only_if_both_sides_vouch_for_it(
    verified: bool | None, vouched: bool, linked: bool, provider: Provider, settings: Any
) -> None:
    """Whoever types somebody's address into their own account must not get that person's sign-in,
    nor their groups."""
    settings.TRAILER_OIDC_LINK_BY_MAIL = True
    olga = make_user("olga", email="Olga@example.com", mail_is_vouched=vouched)
    sign_in(provider, email="olga@example.com", email_verified=verified)
    assert olga.identities.exists() == linked


def test_a_deactivated_account_is_put_out_and_stays_out(provider: Provider) -> None:
    client = sign_in(provider)
    assert client.get("/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/").status_code == 302
    assert not is_in(sign_in(provider))


@pytest.mark.parametrize(
    "token",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"azp": "another-client"},
        {"nonce": "guessed"},
        {"nonce": None},
        {"exp": int(time.time()) - 60},
        {"exp": None},
        {"sub": "somebody-else"},
        {"sub": None},
    ],
)
def test_a_token_that_is_not_ours_is_refused(token: dict[str, Any], provider: Provider) -> None:
    client = Client()
    asked = away(client)
    provider.agree("code-1", asked).token = token
    back = client.get("/login/sso/callback/", {"code": "code-1", "state": asked["state"][0]})
    assert back.headers["Location"] == "/login/?sso=failed"
    assert not is_in(client)
    assert not User.objects.exists()


def test_a_forged_signature_is_refused(provider: Provider) -> None:
    provider.signs_with = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert not is_in(sign_in(provider))


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(provider: Provider) -> None:
    asked = away(Client())
    provider.agree("code-1", asked)
    victim = Client()
    away(victim)
    back = victim.get("/login/sso/callback/", {"code": "code-1", "state": asked["state"][0]})
    assert back.headers["Location"] == "/login/?sso=failed"
    assert not is_in(victim)


def test_a_state_works_once(provider: Provider) -> None:
    client = Client()
    asked = away(client)
    for _ in range(2):
        provider.agree("code-1", asked)
        query = {"code": "code-1", "state": asked["state"][0]}
        back = client.get("/login/sso/callback/", query)
        client.logout()
    assert back.headers["Location"] == "/login/?sso=failed"


def test_a_code_in_the_address_of_the_password_page_signs_nobody_in(provider: Provider) -> None:
    client = Client()
    provider.agree("code-1", away(client))
    client.post("/login/?code=code-1&state=x", {"username": "eva", "password": "x"})
    assert not is_in(client)
    assert "code-1" in provider.grants


def test_a_provider_that_does_not_answer_leads_back_to_the_sign_in(
    provider: Provider, settings: Any
) -> None:
    settings.TRAILER_OIDC_ISSUER = "http://127.0.0.1:9"
    assert Client().get("/login/sso/").headers["Location"] == "/login/?sso=failed"
    assert "did not work" in Client().get("/login/?sso=failed").content.decode()


def test_without_a_provider_there_is_no_such_page() -> None:
    assert Client().get("/login/sso/").status_code == 404
    assert Client().get("/login/sso/callback/?code=x&state=y").status_code == 404
    assert "/login/sso/" not in Client().get("/login/").content.decode()


def test_with_a_provider_the_sign_in_page_offers_it(provider: Provider) -> None:
    assert "Sign in with Example" in Client().get("/login/").content.decode()


def test_where_the_provider_is_does_not_stand_in_redis(provider: Provider) -> None:
    """Whoever may write there could send everybody to a provider of their own."""
    cache.set(f"oidc:{provider.issuer}", {"issuer": provider.issuer, "jwks_uri": "https://evil"})
    assert described()["jwks_uri"] != "https://evil"
