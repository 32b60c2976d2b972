"""Who sees a host only through a workspace there uses nothing of it, and learns of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import api_client, make_grant, make_host, make_registry, make_workspace
from tests.trailer.test_through_workspaces import may, url
from trailer.access.models import Role
from workspaces.models import GpuHold

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


def test_a_host_is_seen_through_its_workspaces_and_does_nothing_for_who_only_sees_it(
    settings: Any, stranger: User
) -> None:
    settings.TRAILER_OPEN_HOSTS = False
    host, other = make_host(), make_host()
    workspace, client = make_workspace(host), api_client(stranger)
    assert client.get(url(host)).status_code == 404
    make_grant(workspace, stranger, Role.VIEWER, inspect=False)
    assert [may(stranger, "host.view", row) for row in (host, other)] == [True, False]
    assert client.get(url(host)).json()["name"] == host.name
    for action in ("use", "workspaces", "images", "volumes", "networks", "bind", "privileged"):
        assert not may(stranger, f"host.{action}", host), action
    body = {"name": "mine", "host": str(host.pk)}
    assert client.post("/api/v1/networks/", body).status_code == 403
    registry = make_registry(stranger)
    asked = client.post(f"/api/v1/registries/{registry.pk}/test/", {"host": str(host.pk)})
    assert asked.status_code == 403
    # Nor is it taken unasked.
    assert client.post(f"/api/v1/registries/{registry.pk}/test/", {}).status_code == 409


def test_a_registry_is_offered_only_hosts_that_may_be_used(settings: Any, stranger: User) -> None:
    make_registry(stranger)
    hosts = [make_host(), make_host()]
    for host in hosts:
        make_grant(make_workspace(host), stranger, Role.VIEWER)
    browser = Client()
    browser.force_login(stranger)
    for is_open in (True, False):
        settings.TRAILER_OPEN_HOSTS = is_open
        page = browser.get("/registries/").content.decode()
        assert [f'value="{host.pk}"' in page for host in hosts] == [is_open] * 2


def test_who_holds_a_card_is_named_to_those_who_may_see_the_workspace(
    settings: Any, owner: User, admin: User, stranger: User
) -> None:
    settings.TRAILER_OPEN_HOSTS = False
    host = make_host(gpus=[{"id": "GPU-1"}, {"id": "GPU-2"}])
    mine, theirs = make_workspace(host, name="mine"), make_workspace(host, owner, name="theirs")
    for workspace, gpu in ((mine, "GPU-1"), (theirs, "GPU-1"), (theirs, "GPU-2")):
        GpuHold.objects.create(host=host, workspace=workspace, gpu=gpu, shared=True)
    make_grant(mine, stranger, Role.VIEWER)

    def holders(user: User) -> list[list[str]]:
        cards = api_client(user).get(url(host)).json()["gpus"]
        return [sorted(card["held_by"]) for card in cards]

    assert holders(stranger) == [["another workspace", "mine"], ["another workspace"]]
    assert holders(admin) == [["mine", "theirs"], ["theirs"]]
    browser = Client()
    browser.force_login(stranger)
    page = browser.get(f"/hosts/{host.pk}/").content.decode()
    assert "theirs" not in page
    assert "another workspace" in page


def test_names_of_holders_cost_one_query_however_many_hosts_there_are(stranger: User) -> None:
    for number in range(3):
        host = make_host(gpus=[{"id": "GPU-1"}])
        workspace = make_workspace(host, name=f"box-{number}")
        GpuHold.objects.create(host=host, workspace=workspace, gpu="GPU-1", shared=False)
    client = api_client(stranger)
    client.get("/api/v1/hosts/")
    with CaptureQueriesContext(connection) as asked:
        rows = client.get("/api/v1/hosts/").json()["results"]
    assert [row["gpus"][0]["held_by"] for row in rows] == [["another workspace"]] * 3
    assert sum("gpu" in query["sql"] and "grant" in query["sql"] for query in asked) == 1
