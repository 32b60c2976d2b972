"""Every route × every kind of caller; a route that is missing from the table fails the build."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories import (
    api_client,
    make_admin,
    make_agent_token,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_user,
    make_volume,
    make_workspace,
)
from trailer.accounts.models import ApiToken, User

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

# How a stranger (signed in, not the owner, no admin) is answered.
HIDDEN, OPEN, FORBIDDEN = "hidden", "open", "forbidden"


@dataclass(frozen=True)
class Route:
    """`kind` names the object whose id goes into the address; `methods` are those it offers."""

    kind: str
    methods: str
    stranger: str


TABLE = {
    "tokens/": Route("", "GET POST", OPEN),
    "tokens/{id}/": Route("token", "GET DELETE", HIDDEN),
    "users/": Route("", "GET POST", FORBIDDEN),
    "users/{id}/": Route("user", "GET PATCH", FORBIDDEN),
    "hosts/": Route("", "GET", OPEN),
    "hosts/{id}/": Route("host", "GET", OPEN),
    "hosts/{id}/cycles/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/enrolment/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/leftovers/": Route("host", "GET", FORBIDDEN),
    "hosts/{id}/confirm-state/": Route("host", "POST", FORBIDDEN),
    "hosts/{id}/unused-images/": Route("host", "GET", OPEN),
    "networks/": Route("", "GET", OPEN),
    "networks/{id}/": Route("network", "GET PATCH DELETE", HIDDEN),
    "volumes/": Route("", "GET", OPEN),
    "volumes/{id}/": Route("volume", "GET DELETE", HIDDEN),
    "registries/": Route("", "GET", OPEN),
    "registries/{id}/": Route("registry", "GET PATCH DELETE", HIDDEN),
    "images/": Route("", "GET", OPEN),
    "images/{id}/": Route("image", "GET PATCH DELETE", HIDDEN),
    "images/{id}/build/": Route("image", "POST", HIDDEN),
    "images/{id}/builds/": Route("image", "GET", HIDDEN),
    "images/{id}/cancel/": Route("image", "POST", HIDDEN),
    "images/{id}/check/": Route("image", "POST", HIDDEN),
    "builds/{id}/": Route("build", "GET", HIDDEN),
    "builds/{id}/log/": Route("build", "GET", HIDDEN),
    "workspaces/": Route("", "GET", OPEN),
    "workspaces/{id}/": Route("workspace", "GET PATCH DELETE", HIDDEN),
    "workspaces/{id}/clone/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/events/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/plan/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/redeploy/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/revisions/": Route("workspace", "GET", HIDDEN),
    "workspaces/{id}/rollback/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/snapshot/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/start/": Route("workspace", "POST", HIDDEN),
    "workspaces/{id}/stop/": Route("workspace", "POST", HIDDEN),
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
            yield re.sub(r"\(\?P<pk>[^)]*\)", "{id}", path).replace("^", "").replace("$", "")


@pytest.fixture
def owner() -> User:
    return make_user()


@pytest.fixture
def ids(owner: User) -> dict[str, str]:
    host = make_host()
    image = make_image(host, owner)
    client = api_client(owner)
    assert client.get("/api/v1/tokens/").status_code == 200
    build = image.builds.get()
    rows = {
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
    return {kind: str(row.pk) for kind, row in rows.items()}


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
    if route.kind not in ("token", "user", ""):
        callers.append(make_admin())
    for caller in callers[:1] if "DELETE" in method else callers:
        client = api_client(caller, scope="admin")
        answer = _call(client, method, path, ids.get(route.kind, ""))
        assert answer.status_code not in (401, 403, 404, 405), answer.content
        assert answer.status_code < 500


@pytest.mark.parametrize(("path", "method"), CASES)
def test_a_token_that_may_only_read_changes_nothing(
    path: str, method: str, ids: dict[str, str], owner: User
) -> None:
    if method == "GET":
        method = "POST" if "POST" in TABLE[path].methods else "PATCH"
    answer = _call(api_client(owner, scope="read"), method, path, ids.get(TABLE[path].kind, ""))
    assert answer.status_code in (403, 405)


@pytest.mark.parametrize("path", [path for path, route in TABLE.items() if route.kind])
@pytest.mark.parametrize("nonsense", ["x", "0", "%00", "..%2f..", "null"])
def test_an_id_that_is_none_is_404(path: str, nonsense: str, owner: User) -> None:
    method = TABLE[path].methods.split()[0]
    assert _call(api_client(owner), method, path, nonsense).status_code in (403, 404)
