"""Every route × every kind of caller; a route that is missing from the table fails the build."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from hosts.models import Network, Volume
from images.models import Image
from tests.factories import (
    api_client,
    make_admin,
    make_agent_token,
    make_grant,
    make_group,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_user,
    make_volume,
    make_workspace,
)
from trailer.access.models import Role
from trailer.accounts.models import ApiToken, User
from trailer.audit.models import AuditEntry
from trailer.audit.record import record
from workspaces.models import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

# Nobody is granted this: only the owner and admins get in.
OWNER: Any = Role.MANAGER + 1
# Objects that are shared by grants; a build is shared with its image.
SHARED = {"workspace", "image", "build", "network", "volume"}
# How a stranger (signed in, not the owner, no admin) is answered.
HIDDEN, OPEN, FORBIDDEN = "hidden", "open", "forbidden"


@dataclass(frozen=True)
class Route:
    """`kind` names the object whose id goes into the address; `methods` are those it offers."""

    kind: str
    methods: str
    stranger: str
    # The least role whose holders get in; without it the method decides.
    least: Role | None = None

    def needs(self, method: str) -> Role:
        if self.least is not None:
            return self.least
        return {"GET": Role.VIEWER, "DELETE": Role.MANAGER}.get(method, Role.EDITOR)


TABLE = {
    "tokens/": Route("", "GET POST", OPEN),
    "tokens/{id}/": Route("token", "GET DELETE", HIDDEN),
    "sessions/": Route("", "GET", OPEN),
    "sessions/{id}/": Route("session", "GET DELETE", HIDDEN),
    "sessions/end-others/": Route("", "POST", OPEN),
    "me/": Route("", "GET PATCH", OPEN),
    "me/password/": Route("", "POST", OPEN),
    "groups/": Route("", "GET POST", FORBIDDEN),
    "groups/{id}/": Route("group", "GET PATCH DELETE", FORBIDDEN),
    "audit/": Route("", "GET", FORBIDDEN),
    "audit/{id}/": Route("audit", "GET", FORBIDDEN),
    "audit/export/": Route("", "GET", FORBIDDEN),
    "users/": Route("", "GET POST", FORBIDDEN),
    "users/{id}/": Route("user", "GET PATCH DELETE", FORBIDDEN),
    "hosts/": Route("", "GET", OPEN),
    "hosts/{id}/": Route("host", "GET", OPEN),
    "hosts/{id}/access/": Route("host", "GET PUT", FORBIDDEN),
    "hosts/{id}/cycles/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/enrolment/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/metrics/": Route("host", "GET", OPEN),
    "hosts/{id}/leftovers/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/confirm-state/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/unused-images/": Route("host", "GET", OPEN),
    "networks/": Route("", "GET", OPEN),
    "networks/{id}/": Route("network", "GET PATCH DELETE", HIDDEN),
    "networks/{id}/grants/": Route("network", "GET PUT", HIDDEN, Role.MANAGER),
    "volumes/": Route("", "GET", OPEN),
    "volumes/{id}/": Route("volume", "GET DELETE", HIDDEN),
    "volumes/{id}/grants/": Route("volume", "GET PUT", HIDDEN, Role.MANAGER),
    "registries/": Route("", "GET", OPEN),
    "registries/{id}/": Route("registry", "GET PATCH DELETE", HIDDEN),
    "registries/{id}/test/": Route("registry", "POST", HIDDEN),
    "images/": Route("", "GET", OPEN),
    "images/{id}/": Route("image", "GET PATCH DELETE", HIDDEN),
    "images/{id}/build/": Route("image", "POST", HIDDEN),
    "images/{id}/builds/": Route("image", "GET", HIDDEN),
    "images/{id}/cancel/": Route("image", "POST", HIDDEN),
    "images/{id}/check/": Route("image", "POST", HIDDEN),
    "images/{id}/grants/": Route("image", "GET PUT", HIDDEN, Role.MANAGER),
    "builds/{id}/": Route("build", "GET", HIDDEN),
    "builds/{id}/log/": Route("build", "GET", HIDDEN),
    "workspaces/": Route("", "GET", OPEN),
    "workspaces/{id}/": Route("workspace", "GET PATCH DELETE", HIDDEN),
    "workspaces/{id}/clone/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/events/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/metrics/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/grants/": Route("workspace", "GET PUT", HIDDEN, Role.MANAGER),
    "workspaces/{id}/logs/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/plan/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/redeploy/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/revisions/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/rollback/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/snapshot/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/start/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/stop/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/transfer/": Route("workspace", "POST", HIDDEN, OWNER),
}
# Needs no login by design; its own tests cover it.
PUBLIC = {"auth/token/"}
CASES = [
    pytest.param(path, method, id=f"{method} {path}")
    for path, route in TABLE.items()
    for method in route.methods.split()
]


def _registered(resolver: Any = None, prefix: str = "") -> Iterator[str]:
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _registered(entry, path)
        elif isinstance(entry, URLPattern):
            yield re.sub(r"\(\?P<(pk|id)>[^)]*\)", "{id}", path).replace("^", "").replace("$", "")


@pytest.fixture
def owner() -> User:
    return make_user()


@pytest.fixture
def ids(owner: User) -> dict[str, str]:
    # Its agent is too old for sessions: what needs one is answered at once, with 503.
    host = make_host(capabilities=["pull"])
    image = make_image(host, owner)
    client = api_client(owner)
    assert client.get("/api/v1/tokens/").status_code == 200
    build = image.builds.get()
    browser = Client()
    browser.force_login(owner)
    record("user.login", owner, actor=owner)
    rows: dict[str, Any] = {
        "host": host,
        "user": owner,
        "token": ApiToken.objects.get(user=owner),
        "network": make_network(host, owner),
        "volume": make_volume(host, owner),
        "registry": make_registry(owner),
        "image": image,
        "build": build,
        "workspace": make_workspace(host, owner, image=image),
    }
    ids = {kind: str(row.pk) for kind, row in rows.items()}
    return ids | {
        "session": str(owner.sessions.get().public_id),
        "group": str(make_group().pk),
        "audit": str(AuditEntry.objects.latest("at").pk),
    }


def _call(client: Any, method: str, path: str, object_id: str) -> Any:
    address = f"/api/v1/{path.replace('{id}', object_id)}"
    return client.generic(method, address, b"{}", content_type="application/json")


def test_every_route_of_the_api_is_in_the_table() -> None:
    found = {path.removeprefix("api/v1/") for path in _registered() if path.startswith("api/v1/")}
    assert found == set(TABLE) | PUBLIC


@pytest.mark.parametrize(("path", "method"), CASES)
def test_nobody_gets_in_without_signing_in(path: str, method: str, ids: dict[str, str]) -> None:
    answer = _call(api_client(), method, path, ids.get(TABLE[path].kind, ""))
    assert answer.status_code == 401
    assert answer.json()["code"] == "not_signed_in"


@pytest.mark.parametrize(("path", "method"), CASES)
def test_a_host_token_is_no_user_token(path: str, method: str, ids: dict[str, str]) -> None:
    client = api_client()
    for keyword in ("Token", "Bearer"):
        client.credentials(HTTP_AUTHORIZATION=f"{keyword} {make_agent_token(make_host())}")
        assert _call(client, method, path, ids.get(TABLE[path].kind, "")).status_code == 401


@pytest.mark.parametrize(("path", "method"), CASES)
def test_a_stranger_is_answered_as_the_table_says(
    path: str, method: str, ids: dict[str, str]
) -> None:
    route = TABLE[path]
    answer = _call(api_client(make_user()), method, path, ids.get(route.kind, ""))
    if route.stranger == HIDDEN:
        missing = _call(api_client(make_user()), method, path, str(uuid.uuid4()))
        assert (answer.status_code, missing.status_code) == (404, 404)
        assert answer.json()["message"] == missing.json()["message"]
    elif route.stranger == FORBIDDEN:
        assert answer.status_code in (403, 404)
    else:
        assert answer.status_code in (200, 400)


@pytest.mark.parametrize(("path", "method"), CASES)
def test_the_owner_and_an_admin_get_in(
    path: str, method: str, ids: dict[str, str], owner: User
) -> None:
    route = TABLE[path]
    callers = [make_admin()] if route.stranger == FORBIDDEN else [owner]
    if route.kind not in ("token", "session", "user", ""):
        callers.append(make_admin())
    for caller in callers[:1] if "DELETE" in method else callers:
        client = api_client(caller, scope="admin")
        answer = _call(client, method, path, ids.get(route.kind, ""))
        assert answer.status_code not in (401, 403, 404, 405), answer.content
        assert answer.status_code < 500 or answer.status_code == 503


SHARED_CASES = [case for case in CASES if TABLE[str(case.values[0])].kind in SHARED]


def _holders(row: Any) -> list[tuple[User, int]]:
    """Users with their role on this object, from the least to the most."""
    viewer, editor, manager, member, late, left = (make_user() for _ in range(6))
    past = timezone.now() - timedelta(seconds=1)
    later = timezone.now() + timedelta(hours=1)
    make_grant(row, late, Role.MANAGER, expires_at=past)
    make_grant(row, make_group(left), Role.MANAGER)
    left.groups.clear()
    make_grant(row, viewer, Role.VIEWER, expires_at=later)
    make_grant(row, editor, Role.EDITOR)
    make_grant(row, make_group(member), Role.EDITOR)
    make_grant(row, manager, Role.MANAGER)
    return [(late, 0), (left, 0), (viewer, 1), (editor, 2), (member, 2), (manager, 3)]


@pytest.mark.parametrize(("path", "method"), SHARED_CASES)
def test_a_role_opens_what_the_table_says_and_nothing_more(
    path: str, method: str, ids: dict[str, str]
) -> None:
    route = TABLE[path]
    shared = "image" if route.kind == "build" else route.kind
    model: Any = {"image": Image, "network": Network, "volume": Volume, "workspace": Workspace}
    row = model[shared].objects.get(pk=ids[shared])
    for user, role in _holders(row):
        answer = _call(api_client(user), method, path, ids[route.kind])
        if role == 0:
            assert answer.status_code == 404, user
        elif role < route.needs(method):
            assert answer.status_code == 403, (role, answer.content)
        else:
            assert answer.status_code not in (401, 403, 404, 405), (role, answer.content)
        assert answer.status_code < 500 or answer.status_code == 503


@pytest.mark.parametrize(("path", "method"), CASES)
def test_a_token_that_may_only_read_changes_nothing(
    path: str, method: str, ids: dict[str, str], owner: User
) -> None:
    if method == "GET":
        method = "POST" if "POST" in TABLE[path].methods else "PATCH"
    answer = _call(api_client(owner, scope="read"), method, path, ids.get(TABLE[path].kind, ""))
    assert answer.status_code in (403, 405)


ADMINISTRATION = [
    *("GET users/", "POST users/", "GET users/{id}/", "PATCH users/{id}/", "DELETE users/{id}/"),
    *("GET groups/", "POST groups/", "PATCH groups/{id}/", "DELETE groups/{id}/"),
    *("GET audit/", "GET audit/{id}/", "GET audit/export/"),
    *("POST hosts/", "PATCH hosts/{id}/", "DELETE hosts/{id}/", "PUT hosts/{id}/access/"),
    *("POST hosts/{id}/enrolment/", "POST hosts/{id}/confirm-state/"),
]


@pytest.mark.parametrize("line", ADMINISTRATION)
def test_administration_takes_a_token_made_for_it(line: str, ids: dict[str, str]) -> None:
    method, _, path = line.partition(" ")
    client = api_client(make_admin(), scope="write")
    answer = _call(client, method, path, ids.get(TABLE[path].kind, ""))
    assert answer.status_code == 403
    assert "scope admin" in answer.json()["message"]


@pytest.mark.parametrize("path", [path for path, route in TABLE.items() if route.kind])
@pytest.mark.parametrize("nonsense", ["x", "0", "%00", "..%2f..", "null"])
def test_an_id_that_is_none_is_404(path: str, nonsense: str, owner: User) -> None:
    method = TABLE[path].methods.split()[0]
    assert _call(api_client(owner), method, path, nonsense).status_code in (403, 404)
