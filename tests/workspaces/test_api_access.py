"""Who may do what to a workspace over REST: every route, every kind of caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import api_client
from tests.workspaces.scene import URL, observe
from trailer.accounts.models import TokenScope
from workspaces.api.urls import router
from workspaces.models import Workspace

if TYPE_CHECKING:
    from rest_framework.test import APIClient

    from tests.workspaces.scene import Scene

# (method, path below the object, body, code for whoever may)
ROUTES: list[tuple[str, str, dict[str, Any], int]] = [
    ("get", "", {}, 200),
    ("patch", "", {"cpus": 1}, 200),
    ("delete", "", {}, 204),
    ("post", "start/", {}, 202),
    ("post", "stop/", {}, 202),
    ("post", "redeploy/", {}, 202),
    ("post", "snapshot/", {"name": "saved"}, 202),
    ("post", "clone/", {"name": "copy"}, 202),
    ("post", "rollback/", {"revision": 1}, 202),
    ("post", "plan/", {"cpus": 1}, 200),
    ("get", "events/", {}, 200),
    ("get", "revisions/", {}, 200),
]
CALLERS = ("owner", "admin", "stranger", "anonymous", "reader", "inactive")


def client_of(scene: Scene, caller: str) -> APIClient:
    if caller == "anonymous":
        return api_client()
    if caller == "reader":
        return api_client(scene.owner, scope=TokenScope.READ)
    if caller == "inactive":
        client = api_client(scene.owner)
        type(scene.owner).objects.filter(pk=scene.owner.pk).update(is_active=False)
        return client
    return api_client(getattr(scene, caller))


def expected(caller: str, method: str, code: int) -> int:
    if caller in ("anonymous", "inactive"):
        return 401
    if caller == "stranger":
        return 404
    if caller == "reader" and method != "get":
        return 403
    return code


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("method", "path", "body", "code"), ROUTES)
def test_each_route_answers_each_caller_as_it_should(
    scene: Scene, caller: str, method: str, path: str, body: dict[str, Any], code: int
) -> None:
    workspace = scene.create()
    observe(workspace, "running")
    client = client_of(scene, caller)
    arguments: dict[str, Any] = {} if method == "get" else {"data": body, "format": "json"}
    answer = getattr(client, method)(f"{URL}{workspace.pk}/{path}", **arguments)
    assert answer.status_code == expected(caller, method, code)
    if answer.status_code >= 400:
        assert set(answer.json()) == {"code", "message", "fields", "request_id"}
        row = Workspace.objects.get()
        assert row.revision == 1


def test_no_route_is_missing_from_the_table() -> None:
    views = {str(vars(pattern)["name"]).removeprefix("workspace-") for pattern in router.urls}
    named = {path.strip("/") or "detail" for _, path, _, _ in ROUTES}
    assert views == named | {"list"}


@pytest.mark.parametrize(
    ("caller", "code", "count"),
    [
        ("owner", 200, 1),
        ("admin", 200, 1),
        ("stranger", 200, 0),
        ("anonymous", 401, 0),
        ("reader", 200, 1),
        ("inactive", 401, 0),
    ],
)
def test_a_list_holds_what_the_caller_may_see(
    scene: Scene, caller: str, code: int, count: int
) -> None:
    scene.create()
    answer = client_of(scene, caller).get(URL)
    assert answer.status_code == code
    assert answer.json().get("count", 0) == count


@pytest.mark.parametrize(
    ("caller", "code"),
    [("owner", 201), ("admin", 201), ("stranger", 400), ("anonymous", 401), ("reader", 403)],
)
def test_creating_needs_a_name_and_an_image_one_may_see(
    scene: Scene, caller: str, code: int
) -> None:
    answer = client_of(scene, caller).post(URL, scene.body(), format="json")
    assert answer.status_code == code


def test_an_id_that_is_none_is_not_found(scene: Scene) -> None:
    client = scene.client()
    for text in ("1", "x", "00000000-0000-4000-8000-000000000000", "%00", "x" * 300, "..%2f"):
        assert client.get(f"{URL}{text}/").status_code == 404
