"""The admin page of a workspace: form and inlines are one change, made by the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Tombstone
from tests.admin_pages import (
    admin_client,
    errors_of,
    form_values,
    messages_of,
    run_action,
    send_form,
)
from tests.factories import make_admin, make_image, make_network, make_volume
from trailer.sealed import unseal
from workspaces.models import Event, Workspace
from workspaces.services import workspace_create

if TYPE_CHECKING:
    from django.test import Client

    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/admin/workspaces/workspace/"


@pytest.fixture
def admin() -> User:
    return make_admin("root")


@pytest.fixture
def client(admin: User) -> Client:
    return admin_client(admin)


@pytest.fixture
def workspace(admin: User) -> Workspace:
    image = make_image(owner=admin)
    volume = make_volume(image.host, admin)
    data: dict[str, Any] = {
        "name": "lab",
        "host": str(image.host_id),
        "image": str(image.pk),
        "command": ["sleep", "1000"],
        "cpus": 1.5,
        "env": {"A": "1", "PEM": "one\n two \n"},
        "secret_env": {"TOKEN": "hush-hush"},
        "ports": [{"container_port": 80, "host_port": 8080}],
        "mounts": [{"volume": str(volume.pk), "target": "/data"}],
        "networks": [str(make_network(image.host, admin).pk)],
        "urls": [{"subdomain": "lab", "domain": "example.com", "port": 80}],
        "health_check": {"test": ["CMD", "true"]},
    }
    return workspace_create(actor=admin, data=data)


def _change_url(workspace: Workspace) -> str:
    return f"{URL}{workspace.pk}/change/"


def test_saving_the_page_unchanged_changes_nothing(client: Client, workspace: Workspace) -> None:
    before = workspace.host.__class__.objects.get(pk=workspace.host_id).desired_version
    answer = send_form(client, _change_url(workspace), {})
    assert errors_of(answer) == {}
    assert answer.status_code == 302
    workspace.refresh_from_db()
    workspace.host.refresh_from_db()
    assert workspace.revision == 1
    assert workspace.host.desired_version == before


def test_an_edit_raises_the_revision_and_what_agents_poll(
    client: Client, workspace: Workspace
) -> None:
    workspace.host.refresh_from_db()
    before = workspace.host.desired_version
    answer = send_form(client, _change_url(workspace), {"memory_bytes": str(64 * 1024**2)})
    assert errors_of(answer) == {}
    workspace.refresh_from_db()
    workspace.host.refresh_from_db()
    assert (workspace.revision, workspace.memory_bytes) == (2, 64 * 1024**2)
    assert workspace.host.desired_version == before + 1
    event = Event.objects.filter(workspace=workspace).order_by("-received_at").first()
    assert event is not None
    assert event.actor is not None
    assert event.actor.username == "root"


def test_parts_are_edited_added_and_removed_in_one_revision(
    client: Client, workspace: Workspace
) -> None:
    changes = {
        "ports-TOTAL_FORMS": "2",
        "ports-0-host_port": "8081",
        "ports-1-id": "",
        "ports-1-container_port": "443",
        "ports-1-protocol": "tcp",
        "mounts-0-DELETE": "on",
        "env_vars-0-value": "2",
        "urls-0-port": "8000",
    }
    answer = send_form(client, _change_url(workspace), changes)
    assert errors_of(answer) == {}
    workspace.refresh_from_db()
    assert workspace.revision == 2
    assert list(workspace.ports.values_list("container_port", "host_port")) == [
        (80, 8081),
        (443, None),
    ]
    assert not workspace.mounts.exists()
    assert workspace.env_vars.get(name="A").value == "2"
    assert workspace.urls.get().port == 8000


def test_a_secret_is_never_shown_and_stays_when_left_empty(
    client: Client, workspace: Workspace
) -> None:
    page = client.get(_change_url(workspace)).content.decode()
    stored = workspace.env_vars.get(name="TOKEN")
    assert "hush-hush" not in page
    assert stored.secret_token not in page
    send_form(client, _change_url(workspace), {"description": "x"})
    stored = workspace.env_vars.get(name="TOKEN")
    assert (stored.is_secret, stored.value) == (True, "")
    assert unseal(stored, "secret_token") == "hush-hush"


def test_a_secret_is_overwritten_by_what_is_typed(client: Client, workspace: Workspace) -> None:
    values = form_values(client, _change_url(workspace))
    row = next(k for k, v in values.items() if k.startswith("env_vars-") and v == "TOKEN")
    answer = client.post(
        _change_url(workspace), values | {row.replace("-name", "-value"): "new-one"}
    )
    assert errors_of(answer) == {}
    stored = workspace.env_vars.get(name="TOKEN")
    assert stored.value == ""
    assert unseal(stored, "secret_token") == "new-one"
    workspace.refresh_from_db()
    assert workspace.revision == 2


def test_a_renamed_secret_needs_its_value_again(client: Client, workspace: Workspace) -> None:
    values = form_values(client, _change_url(workspace))
    row = next(k for k, v in values.items() if k.startswith("env_vars-") and v == "TOKEN")
    answer = client.post(_change_url(workspace), values | {row: "OTHER"})
    assert "OTHER" in str(errors_of(answer))
    assert workspace.env_vars.filter(name="TOKEN").exists()


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"memory_bytes": "1000"}, "memory_bytes"),
        ({"cpus": "9999"}, "cpus"),
        ({"command": '"sleep"'}, "command"),
        ({"command": "[1]"}, "command"),
        ({"gpus": '{"count": -1}'}, "gpus"),
        ({"name": "Not a name"}, "name"),
        ({"labels": '{"trailer.x": "1"}'}, "labels"),
        ({"health_check": '{"tset": []}'}, "health_check"),
        ({"ports-0-container_port": "70000"}, "__all__"),
        ({"mounts-0-target": "relative"}, "__all__"),
        ({"env_vars-0-name": "A=B"}, "__all__"),
    ],
)
def test_what_the_service_refuses_is_shown_in_the_form(
    client: Client, workspace: Workspace, changes: dict[str, str], where: str
) -> None:
    answer = send_form(client, _change_url(workspace), changes)
    assert answer.status_code == 200
    assert where in errors_of(answer)
    workspace.refresh_from_db()
    assert (workspace.revision, workspace.name) == (1, "lab")


def test_an_edit_from_an_outdated_page_is_refused(client: Client, workspace: Workspace) -> None:
    values = form_values(client, _change_url(workspace))
    Workspace.objects.filter(pk=workspace.pk).update(revision=5)
    answer = client.post(_change_url(workspace), values | {"description": "mine"})
    assert errors_of(answer)
    workspace.refresh_from_db()
    assert workspace.description == ""


def test_a_workspace_is_made_with_its_parts(client: Client, admin: User) -> None:
    image = make_image(owner=admin)
    changes = {
        "name": "fresh",
        "host": str(image.host_id),
        "image": str(image.pk),
        "command": '["sleep", "5"]',
        "ports-TOTAL_FORMS": "1",
        "ports-0-container_port": "80",
        "ports-0-protocol": "tcp",
        "env_vars-TOTAL_FORMS": "2",
        "env_vars-0-name": "A",
        "env_vars-0-value": "1",
        "env_vars-1-name": "S",
        "env_vars-1-value": "hush",
        "env_vars-1-is_secret": "on",
    }
    answer = send_form(client, f"{URL}add/", changes)
    assert errors_of(answer) == {}
    made = Workspace.objects.get()
    assert (made.name, made.owner, made.command) == ("fresh", admin, ["sleep", "5"])
    assert made.ports.get().container_port == 80
    assert made.env_vars.get(name="A").value == "1"
    assert unseal(made.env_vars.get(name="S"), "secret_token") == "hush"
    image.host.refresh_from_db()
    assert image.host.desired_version == 2


def test_a_refused_workspace_is_not_made(client: Client, admin: User) -> None:
    image = make_image(owner=admin)
    changes = {
        "name": "fresh",
        "host": str(image.host_id),
        "image": str(image.pk),
        "memory_bytes": "5",
    }
    assert "memory_bytes" in errors_of(send_form(client, f"{URL}add/", changes))
    assert not Workspace.objects.exists()


def test_start_stop_and_redeploy_are_actions(client: Client, workspace: Workspace) -> None:
    run_action(client, URL, "stop", workspace)
    workspace.refresh_from_db()
    assert (workspace.desired_state, workspace.revision) == ("stopped", 2)
    answer = run_action(client, URL, "start", workspace)
    assert "Starting: 1." in messages_of(answer)
    run_action(client, URL, "redeploy", workspace)
    workspace.refresh_from_db()
    assert (workspace.desired_state, workspace.generation) == ("running", 1)


@pytest.mark.parametrize("way", ["page", "action"])
def test_a_deleted_workspace_leaves_an_order_for_the_agent(
    client: Client, workspace: Workspace, way: str
) -> None:
    if way == "page":
        client.post(f"{URL}{workspace.pk}/delete/", {"post": "yes"})
    else:
        rows = {"_selected_action": [str(workspace.pk)]}
        client.post(URL, {"action": "delete_selected", "post": "yes"} | rows)
    assert not Workspace.objects.exists()
    stone = Tombstone.objects.get()
    assert (stone.kind, stone.object_id, stone.name) == (
        "workspace",
        workspace.pk,
        "trailer-lab",
    )
