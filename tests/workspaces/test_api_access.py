"""Who may do what to a workspace over REST: every route, every kind of caller."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from tests.factories import api_client, make_grant, make_group
from tests.workspaces.scene import URL, observe
from trailer.access.models import Role
from trailer.accounts.models import TokenScope
from workspaces.api.urls import router
from workspaces.models import Workspace

if TYPE_CHECKING:
    from rest_framework.test import APIClient

    from tests.workspaces.scene import Scene

NOTHING, VIEWER, EDITOR, MANAGER, OWNER = range(5)
# (method, path below the object, body, code for whoever may, the least role that may)
ROUTES: list[tuple[str, str, dict[str, Any], int, int]] = [
    ("get", "", {}, 200, VIEWER),
    ("patch", "", {"cpus": 1}, 200, EDITOR),
    ("delete", "", {}, 204, MANAGER),
    ("post", "start/", {}, 202, EDITOR),
    ("post", "extend/", {}, 409, EDITOR),
    ("post", "stop/", {}, 202, EDITOR),
    ("post", "redeploy/", {}, 202, EDITOR),
    ("post", "snapshot/", {"name": "saved"}, 202, EDITOR),
    ("post", "clone/", {"name": "copy"}, 202, EDITOR),
    ("post", "rollback/", {"revision": 1}, 202, EDITOR),
    ("post", "rollback/plan/", {"revision": 1}, 200, EDITOR),
    ("post", "redeploy/plan/", {}, 200, EDITOR),
    ("post", "plan/", {"cpus": 1}, 200, EDITOR),
    ("get", "events/", {}, 200, VIEWER),
    ("get", "revisions/", {}, 200, VIEWER),
    ("get", "snapshots/", {}, 200, OWNER),
    ("get", "grants/", {}, 200, MANAGER),
    ("put", "grants/", {}, 200, MANAGER),
    ("post", "transfer/", {"owner": "boss"}, 202, OWNER),
]
# Covered where the agent's side is: tests of logs, metrics and sessions.
ELSEWHERE = {"logs", "metrics"}
# Each caller's role on the workspace; what refuses a caller before that is in `expected`.
CALLERS = {
    "owner": OWNER,
    "admin": OWNER,
    "stranger": NOTHING,
    "anonymous": NOTHING,
    "reader": OWNER,
    "inactive": NOTHING,
    "viewer": VIEWER,
    "editor": EDITOR,
    "manager": MANAGER,
    "expired": NOTHING,
    "member": EDITOR,
    "former member": NOTHING,
}


def client_of(scene: Scene, caller: str, workspace: Workspace | None = None) -> APIClient:
    if caller == "anonymous":
        return api_client()
    if caller == "reader":
        return api_client(scene.owner, scope=TokenScope.READ)
    if caller == "inactive":
        client = api_client(scene.owner)
        type(scene.owner).objects.filter(pk=scene.owner.pk).update(is_active=False)
        return client
    if caller in ("owner", "admin", "stranger"):
        return api_client(getattr(scene, caller))
    if workspace is not None:
        grant(scene, caller, workspace)
    return api_client(scene.stranger)


def grant(scene: Scene, caller: str, workspace: Workspace) -> None:
    """Makes the stranger this kind of caller; what the workspace is made of comes along."""
    if caller == "expired":
        past = timezone.now() - timedelta(seconds=1)
        make_grant(workspace, scene.stranger, Role.MANAGER, expires_at=past)
    elif "member" in caller:
        group = make_group(scene.stranger)
        make_grant(workspace, group, Role.EDITOR)
        if caller.startswith("former"):
            scene.stranger.groups.clear()
    else:
        later = timezone.now() + timedelta(hours=1)
        make_grant(workspace, scene.stranger, Role[caller.upper()], expires_at=later)
    make_grant(scene.image, scene.stranger, Role.VIEWER)


def expected(caller: str, method: str, code: int, least: int) -> int:
    if caller in ("anonymous", "inactive"):
        return 401
    if CALLERS[caller] == NOTHING:
        return 404
    if (caller == "reader" and method != "get") or CALLERS[caller] < least:
        return 403
    return code


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("method", "path", "body", "code", "least"), ROUTES)
def test_each_route_answers_each_caller_as_it_should(
    scene: Scene, caller: str, method: str, path: str, body: dict[str, Any], code: int, least: int
) -> None:
    workspace = scene.create()
    observe(workspace, "running")
    client = client_of(scene, caller, workspace)
    data: Any = [] if method == "put" else body
    arguments: dict[str, Any] = {} if method == "get" else {"data": data, "format": "json"}
    answer = getattr(client, method)(f"{URL}{workspace.pk}/{path}", **arguments)
    assert answer.status_code == expected(caller, method, code, least), answer.content
    if answer.status_code >= 400:
        assert set(answer.json()) == {"code", "message", "fields", "request_id"}
        row = Workspace.objects.get()
        assert (row.revision, row.owner) == (1, scene.owner)


def test_no_route_is_missing_from_the_table() -> None:
    views = {str(vars(pattern)["name"]).removeprefix("workspace-") for pattern in router.urls}
    named = {path.strip("/").replace("/", "-") or "detail" for _, path, _, _, _ in ROUTES}
    assert views - ELSEWHERE == named | {"list"}


@pytest.mark.parametrize(
    ("caller", "code", "count"),
    [
        ("owner", 200, 1),
        ("admin", 200, 1),
        ("stranger", 200, 0),
        ("anonymous", 401, 0),
        ("reader", 200, 1),
        ("inactive", 401, 0),
        ("viewer", 200, 1),
        ("member", 200, 1),
        ("expired", 200, 0),
        ("former member", 200, 0),
    ],
)
def test_a_list_holds_what_the_caller_may_see(
    scene: Scene, caller: str, code: int, count: int
) -> None:
    answer = client_of(scene, caller, scene.create()).get(URL)
    assert answer.status_code == code
    assert answer.json().get("count", 0) == count


@pytest.mark.parametrize(
    ("caller", "actions"),
    [
        ("owner", {"stop", "redeploy", "snapshot", "clone", "delete"}),
        ("manager", {"stop", "redeploy", "snapshot", "clone", "delete"}),
        ("editor", {"stop", "redeploy", "snapshot", "clone"}),
        ("member", {"stop", "redeploy", "snapshot", "clone"}),
        ("viewer", set()),
    ],
)
def test_the_actions_offered_are_those_the_caller_may_take(
    scene: Scene, caller: str, actions: set[str]
) -> None:
    workspace = scene.create()
    observe(workspace, "running")
    client = client_of(scene, caller, workspace)
    [listed] = client.get(URL).json()["results"]
    shown = client.get(f"{URL}{workspace.pk}/").json()
    assert set(listed["allowed_actions"]) == set(shown["allowed_actions"]) == actions


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
