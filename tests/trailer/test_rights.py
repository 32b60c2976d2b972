"""Logs, inspect and terminal: rights that a grant may leave out, each by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.factories import (
    api_client,
    make_grant,
    make_group,
    make_image,
    make_stack,
    make_workspace,
)
from trailer import policy
from trailer.access.models import Grant, Right, Role
from trailer.audit.models import AuditEntry
from workspaces.models import EnvVar, Workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
ACTIONS = {
    "logs": ("workspace.logs",),
    "inspect": ("workspace.inspect",),
    "terminal": ("workspace.exec", "workspace.attach"),
}
SECRET = "canary-51c0de"


@pytest.fixture
def workspace(host: Host, owner: User) -> Workspace:
    row = make_workspace(host, owner, "box", command=["run", SECRET], labels={"note": SECRET})
    EnvVar.objects.create(workspace=row, name="MODE", value=SECRET)
    return row


def url(row: Any) -> str:
    return f"/api/v1/{row._meta.model_name}s/{row.pk}/"


def share(owner: User, row: Any, **entry: Any) -> Any:
    body = [{"user": "stan", "role": "viewer", **entry}]
    return api_client(owner).put(f"{url(row)}grants/", body, format="json")


@pytest.mark.parametrize("left_out", Right.values)
@pytest.mark.parametrize("kind", ["workspace", "stack"])
def test_each_is_left_out_by_itself(
    kind: str, left_out: str, workspace: Workspace, host: Host, owner: User, stranger: User
) -> None:
    stack = make_stack(host, owner)
    Workspace.objects.filter(pk=workspace.pk).update(stack=stack.pk, service="web")
    workspace.refresh_from_db()
    shared = {"workspace": workspace, "stack": stack}[kind]
    make_grant(shared, stranger, Role.EDITOR, **{left_out: False})
    for right, actions in ACTIONS.items():
        for action in actions:
            found = Workspace.objects.filter(policy.permitted(action, stranger)).exists()
            assert found == policy.allows(stranger, action, workspace) == (right != left_out)
    assert policy.allows(stranger, "workspace.modify", workspace)


def test_a_right_never_widens_a_role(workspace: Workspace, owner: User, stranger: User) -> None:
    assert share(owner, workspace, rights=[*Right.values]).status_code == 200
    assert not policy.allows(stranger, "workspace.exec", workspace)
    assert policy.allows(stranger, "workspace.logs", workspace)


def test_another_grant_may_bring_what_one_leaves_out(workspace: Workspace, stranger: User) -> None:
    make_grant(workspace, stranger, Role.EDITOR, logs=False)
    assert not policy.allows(stranger, "workspace.logs", workspace)
    make_grant(workspace, make_group(stranger), Role.VIEWER, terminal=False)
    assert policy.allows(stranger, "workspace.logs", workspace)
    assert policy.allows(stranger, "workspace.exec", workspace)


def test_they_are_given_and_kept_by_the_list(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    answer = share(owner, workspace, rights=["inspect"])
    assert answer.json()[0]["rights"] == ["inspect"]
    [change] = AuditEntry.objects.get(action="workspace.share").changes
    assert change["to"] == ["stan: viewer without logs and terminal"]
    # A form that knows nothing of them changes nothing about them.
    assert share(owner, workspace, expires_at=None).json()[0]["rights"] == ["inspect"]
    Grant.objects.update(inspect=False)
    assert share(owner, workspace, role="editor").json()[0]["rights"] == ["inspect"]
    assert share(owner, workspace, rights=[*Right.values]).json()[0]["rights"] == Right.values


def test_where_a_role_is_all_there_is_rights_are_refused(
    host: Host, owner: User, stranger: User
) -> None:
    image, stack = make_image(host, owner), make_stack(host, owner)
    answer = share(owner, image, rights=["logs"])
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["grants.0.rights"])
    told = share(owner, image).json()
    assert told[0]["rights"] is None
    assert api_client(owner).put(f"{url(image)}grants/", told, format="json").json() == told
    assert share(owner, stack, rights=["logs"]).status_code == 400
    assert share(owner, stack, rights=["inspect"]).status_code == 200


def test_without_inspect_nothing_tells_how_it_is_configured(
    workspace: Workspace, host: Host, owner: User, stranger: User
) -> None:
    edit = {"env": {"MODE": f"{SECRET}-new"}}
    assert api_client(owner).patch(url(workspace), edit).status_code == 200
    make_grant(workspace, stranger, Role.VIEWER, inspect=False)
    client, browser = api_client(stranger), Client()
    browser.force_login(stranger)
    page = f"/workspaces/{workspace.pk}/"
    shown = client.get(url(workspace)).json()
    assert (shown["name"], shown["env"], shown["command"]) == ("box", {}, [])
    assert "env" in shown["hidden_fields"]
    addresses = (url(workspace), "/api/v1/workspaces/", f"{url(workspace)}events/")
    for address in addresses:
        answer = client.get(address)
        assert (answer.status_code, SECRET in answer.content.decode()) == (200, False), address
    assert client.get(f"{url(workspace)}revisions/").status_code == 403
    for tab in ("overview", "events", "revisions"):
        assert SECRET not in browser.get(f"{page}?tab={tab}").content.decode(), tab
    Grant.objects.update(inspect=True)
    for address in (*addresses, f"{url(workspace)}revisions/"):
        assert SECRET in client.get(address).content.decode(), address
    for tab in ("overview", "events", "revisions"):
        assert SECRET in browser.get(f"{page}?tab={tab}").content.decode(), tab
    assert client.get(url(workspace)).json()["hidden_fields"] == []


def test_without_logs_or_terminal_their_doors_are_shut(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.EDITOR, logs=False, terminal=False)
    answer = api_client(stranger).get(f"{url(workspace)}logs/")
    assert answer.status_code == 403
    assert "read the logs" in answer.json()["message"]
    browser = Client()
    browser.force_login(stranger)
    page = browser.get(f"/workspaces/{workspace.pk}/").content.decode()
    assert "tab=logs" not in page
    assert "tab=terminal" not in page
    assert "tab=settings" in page


def test_the_access_tab_ticks_what_a_grant_has_and_all_of_a_new_one(
    workspace: Workspace, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.VIEWER, logs=False)
    browser = Client()
    browser.force_login(owner)
    page = browser.get(f"/workspaces/{workspace.pk}/?tab=access").content.decode()
    boxes = re.findall(r'name="rights" value="(\w+)"( checked)?', page)
    there, new = boxes[:3], boxes[3:]
    assert {value for value, ticked in there if ticked} == {"inspect", "terminal"}
    assert {value for value, ticked in new if ticked} == set(Right.values)
