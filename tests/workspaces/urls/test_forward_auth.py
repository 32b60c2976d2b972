"""The sign-in side of URLs and the question of a host's own router, without any network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from agent.protocol.naming import forward_auth_key
from hosts.selectors import host_key
from hosts.services.enrolment import enrolment_create
from tests.factories import make_admin, make_grant, make_host, make_user, make_workspace
from trailer.access.models import Role
from workspaces.models import Url, Workspace

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
HOST = "own.apps.example.com"
PAGE = {"HTTP_ACCEPT": "text/html"}


@pytest.fixture
def owner() -> User:
    return make_user("ada")


@pytest.fixture
def workspace(owner: User) -> Workspace:
    host = make_host()
    enrolment_create(actor=make_admin(), host=host)
    host.refresh_from_db()
    made = make_workspace(host, owner)
    Url.objects.create(
        workspace=made, subdomain="own", domain="apps.example.com", port=80, auth="owner"
    )
    Url.objects.create(workspace=made, subdomain="us", domain="localhost", port=80, auth="users")
    return made


def ask(client: Client, workspace: Workspace, uri: str = "/", **fields: Any) -> Any:
    key = forward_auth_key(
        host_key(workspace.host), str(workspace.pk), HOST, str(workspace.host.pk)
    )
    address = f"/forward-auth/{workspace.pk}/{HOST}/?key={key}"
    return client.get(address, HTTP_X_FORWARDED_URI=uri, **fields)


def enter(client: Client, workspace: Workspace, visitor: Client) -> Any:
    """From the router to the sign-in page and back, as a browser goes."""
    sent = ask(visitor, workspace, "/lab?a=1", **PAGE)
    assert sent.status_code == 302
    there = urlsplit(sent.headers["Location"])
    answer = client.get(f"{there.path}?{there.query}")
    if answer.status_code != 200:
        return answer
    back = urlsplit(answer.headers["Refresh"].partition("url=")[2])
    assert back.netloc == HOST
    return ask(visitor, workspace, f"{back.path}?{back.query}", **PAGE)


def test_the_owner_comes_back_with_a_proof_and_passes(owner: User, workspace: Workspace) -> None:
    platform, visitor = Client(), Client()
    platform.force_login(owner)
    back = enter(platform, workspace, visitor)
    assert (back.status_code, back.headers["Location"]) == (302, f"http://{HOST}/lab?a=1")
    passed = ask(visitor, workspace, HTTP_AUTHORIZATION="Token trl_api_x")
    assert passed.status_code == 200
    assert passed.headers["X-Trailer-User"] == "ada"
    assert "Cookie" not in passed.headers
    assert "Authorization" not in passed.headers
    visitor.cookies["theme"] = "dark"
    assert ask(visitor, workspace).headers["Cookie"] == "theme=dark"


def test_with_https_the_cookies_have_names_that_no_neighbour_can_set(
    owner: User, workspace: Workspace
) -> None:
    Url.objects.filter(subdomain="own").update(tls=True)
    platform, visitor = Client(), Client()
    platform.force_login(owner)
    back = enter(platform, workspace, visitor)
    assert back.headers["Location"] == f"https://{HOST}/lab?a=1"
    assert set(visitor.cookies) == {"__Host-trailer_url", "__Host-trailer_url_state"}
    proof = back.cookies["__Host-trailer_url"]
    assert (proof["secure"], proof["path"], proof["domain"]) == (True, "/", "")
    assert ask(visitor, workspace).headers["X-Trailer-User"] == "ada"


def test_an_admin_is_not_the_owner(workspace: Workspace) -> None:
    platform = Client()
    platform.force_login(make_admin())
    assert enter(platform, workspace, Client()).status_code == 404


def test_a_proof_of_another_browser_is_worth_nothing(owner: User, workspace: Workspace) -> None:
    platform, visitor, victim = Client(), Client(), Client()
    platform.force_login(owner)
    sent = urlsplit(ask(visitor, workspace, "/", **PAGE).headers["Location"])
    answer = platform.get(f"{sent.path}?{sent.query}")
    back = urlsplit(answer.headers["Refresh"].partition("url=")[2])
    ask(victim, workspace, "/", **PAGE)
    stolen = ask(victim, workspace, f"{back.path}?{back.query}", **PAGE)
    assert stolen.status_code == 400
    assert ask(victim, workspace).status_code == 401


def test_signing_out_ends_the_visit(owner: User, workspace: Workspace) -> None:
    platform, visitor = Client(), Client()
    platform.force_login(owner)
    enter(platform, workspace, visitor)
    assert ask(visitor, workspace).status_code == 200
    owner.sessions.all().delete()
    assert ask(visitor, workspace).status_code == 401


def test_a_question_without_the_routers_key_is_not_answered(workspace: Workspace) -> None:
    address = f"/forward-auth/{workspace.pk}/{HOST}/"
    assert Client().get(address).status_code == 404
    assert Client().get(f"{address}?key=abc").status_code == 404
    assert Client().get(address, {"key": "kéy"}).status_code == 404
    other = f"/forward-auth/{workspace.pk}/us.localhost/"
    key = forward_auth_key(
        host_key(workspace.host), str(workspace.pk), HOST, str(workspace.host.pk)
    )
    assert Client().get(f"{other}?key={key}").status_code == 404


NEIGHBOUR = {"HTTP_ORIGIN": "http://neighbour.apps.example.com"}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"HTTP_X_FORWARDED_METHOD": "POST", "HTTP_ORIGIN": f"http://{HOST}"}, 200),
        ({"HTTP_X_FORWARDED_METHOD": "POST"}, 200),
        ({"HTTP_X_FORWARDED_METHOD": "POST", **NEIGHBOUR}, 403),
        ({"HTTP_X_FORWARDED_METHOD": "DELETE", "HTTP_ORIGIN": "null"}, 403),
        ({"HTTP_SEC_WEBSOCKET_KEY": "x", **NEIGHBOUR}, 403),
        # A router's answers keep their CORS fields, so a neighbour must not even ask.
        (NEIGHBOUR, 403),
        ({"HTTP_ORIGIN": f"http://{HOST}:9999"}, 403),
    ],
)
# The second is what a proxy in front of the server makes of it.
@pytest.mark.parametrize("forwarded_host", [HOST, "trailer.example.com"])
def test_a_page_of_a_neighbour_does_nothing_with_its_visitors_cookie(
    owner: User, workspace: Workspace, fields: dict[str, str], status: int, forwarded_host: str
) -> None:
    platform, visitor = Client(), Client()
    platform.force_login(owner)
    enter(platform, workspace, visitor)
    answer = ask(visitor, workspace, HTTP_X_FORWARDED_HOST=forwarded_host, **fields)
    assert answer.status_code == status


@pytest.mark.parametrize("port", ["9999", "80", "0"])
def test_a_proof_is_sent_to_the_port_that_serves_the_url_whatever_was_asked(
    owner: User, workspace: Workspace, port: str
) -> None:
    """Another program on the same machine may listen on any other."""
    client = Client()
    client.force_login(owner)
    to = {"to": f"http://{HOST}:{port}/lab", "state": "s" * 16}
    there = client.get("/urls/enter/", to).headers["Refresh"].partition("url=")[2]
    assert there.startswith(f"http://{HOST}/.trailer/enter?token=")
    asked = ask(Client(), workspace, "/", HTTP_X_FORWARDED_HOST=f"{HOST}:{port}", **PAGE)
    wanted = parse_qs(urlsplit(asked.headers["Location"]).query)["to"]
    assert wanted == [f"http://{HOST}/"]


CLAIMS = (
    *("X_TRAILER_USER", "REMOTE_USER", "X_REMOTE_USER", "X_FORWARDED_USER", "X_AUTH_REQUEST_USER"),
    *(
        "X_FORWARDED_FOR",
        "X_FORWARDED_PREFERRED_USERNAME",
        "X_REAL_IP",
        "FORWARDED",
        "X_ORIGINAL_URL",
    ),
)


def test_no_claim_of_a_client_opens_anything(workspace: Workspace) -> None:
    for name in CLAIMS:
        answer = ask(Client(), workspace, **{f"HTTP_{name}": "ada"})
        assert answer.status_code == 401, name
    elsewhere = ask(Client(), workspace, HTTP_X_FORWARDED_HOST="us.localhost")
    assert elsewhere.status_code == 401
    upgrade = ask(Client(), workspace, HTTP_UPGRADE="websocket", HTTP_CONNECTION="Upgrade")
    assert upgrade.status_code == 401


@pytest.mark.parametrize(
    "uri",
    [
        *("/.trailer/enter/", "/.trailer//enter", "//.trailer/enter", "/.trailer/%65nter?to=/x"),
        *("/.trailer/enter/../lab", "/..%2f.trailer/enter", "/.TRAILER/ENTER", "", "?token=x"),
    ],
)
def test_no_spelling_of_a_path_is_let_through(workspace: Workspace, uri: str) -> None:
    assert ask(Client(), workspace, uri).status_code == 401


def test_a_proof_ends_with_the_workspace_that_had_the_name(
    owner: User, workspace: Workspace
) -> None:
    platform, visitor = Client(), Client()
    platform.force_login(owner)
    enter(platform, workspace, visitor)
    other = make_workspace(workspace.host, owner, name="other")
    Url.objects.filter(subdomain="own").update(workspace=other)
    assert ask(visitor, other).status_code == 401


def test_a_program_without_a_proof_is_told_so(workspace: Workspace) -> None:
    assert ask(Client(), workspace).json()["code"] == "not_signed_in"


@pytest.mark.parametrize(
    "to",
    [
        *("https://evil.example/", "//evil.example/", "http://us.localhost.evil.example/", "/"),
        *("javascript:alert(1)", "http://nobody.localhost/", "", "http://[::1"),
    ],
)
def test_signing_in_leads_to_urls_of_workspaces_only(
    owner: User, workspace: Workspace, to: str
) -> None:
    client = Client()
    client.force_login(owner)
    answer = client.get("/urls/enter/", {"to": to, "state": "s" * 16})
    assert answer.status_code == 404


def test_signing_in_never_leads_to_an_open_url_of_a_foreign_domain(
    owner: User, workspace: Workspace
) -> None:
    """Nobody needs to sign in for it, and anybody may claim such a name for a workspace."""
    Url.objects.create(
        workspace=workspace, subdomain="x", domain="evil.example", port=80, auth="public"
    )
    Url.objects.create(
        workspace=workspace, subdomain="open", domain="localhost", port=80, auth="public"
    )
    client = Client()
    client.force_login(owner)
    to = {"to": "http://x.evil.example/login", "state": "s" * 16}
    answer = client.get("/urls/enter/", to)
    assert answer.status_code == 404
    assert "evil" not in str(answer.headers)
    assert client.get("/urls/enter/", {"to": "http://open.localhost/"}).status_code == 302


def test_a_path_that_browsers_take_for_another_host_becomes_the_start(
    owner: User, workspace: Workspace
) -> None:
    client = Client()
    client.force_login(owner)
    to = "http://us.localhost//evil.example/"
    answer = client.get("/urls/enter/", {"to": to, "state": "s" * 16})
    there = urlsplit(answer.headers["Location"])
    assert there.hostname == "us.localhost"
    assert parse_qs(there.query)["to"] == ["/"]


def test_a_grant_opens_and_its_end_closes(workspace: Workspace) -> None:
    reader, client = make_user(), Client()
    client.force_login(reader)
    to = {"to": "http://us.localhost/", "state": "s" * 16}
    assert client.get("/urls/enter/", to).status_code == 404
    grant = make_grant(workspace, reader, Role.VIEWER)
    assert client.get("/urls/enter/", to).status_code == 302
    grant.delete()
    assert client.get("/urls/enter/", to).status_code == 404


def test_whoever_is_signed_out_goes_to_the_sign_in_page_and_returns(workspace: Workspace) -> None:
    answer = Client().get("/urls/enter/", {"to": "http://us.localhost/", "state": "s" * 16})
    assert answer.headers["Location"].startswith("/login/?next=/urls/enter/")
