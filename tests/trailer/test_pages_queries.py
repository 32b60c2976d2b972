"""Pages cost the same number of queries however many objects there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import (
    make_host,
    make_image,
    make_network,
    make_registry,
    make_silent_host,
    make_stack,
    make_volume,
    make_workspace,
)
from workspaces.models import Port, Workspace

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db

# Session, user, and what the page itself reads; a page that needs more has to say why here.
BUDGETS = {
    "/": 16,
    "/workspaces/": 7,
    # With one look at whether the user may turn on privileged settings.
    "/workspaces/new/": 8,
    "/search/?q=w": 10,
    "/images/": 5,
    # With the services of all of them, their mounts, and the newest sync of each.
    "/stacks/": 9,
    "/hosts/": 4,
    # With one look at hosts on which the user may choose a network's addresses.
    "/networks/": 7,
    # With one look at whether the user may mount folders of a host.
    "/volumes/": 7,
    "/registries/": 4,
}


def _fill(owner: User, number: int) -> None:
    for _ in range(number):
        host = make_host()
        image = make_image(host, owner, status="failed")
        workspace = make_workspace(host, owner, image=image, observed_status="error")
        Port.objects.create(workspace=workspace, container_port=80)
        make_network(host, owner)
        make_volume(host, owner)
        make_registry(owner)
        make_stack(host, owner)
        make_silent_host()


def _queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return len(caught)


@pytest.mark.parametrize("address", BUDGETS)
def test_a_list_costs_a_fixed_number_of_queries(address: str, owner: User) -> None:
    client = Client()
    client.force_login(owner)
    _fill(owner, 1)
    few = _queries(client, address)
    _fill(owner, 6)
    assert _queries(client, address) == few
    assert few <= BUDGETS[address]


@pytest.mark.parametrize("address", ["/", "/workspaces/"])
def test_500_workspaces_cost_no_more_queries_and_no_large_page(address: str, owner: User) -> None:
    client = Client()
    client.force_login(owner)
    _fill(owner, 1)
    few = _queries(client, address)
    _add_failed_workspaces(owner, 499)
    assert _queries(client, address) == few
    page = client.get(address).content
    assert b"500" in page
    assert len(page) < 300_000, f"{len(page)} bytes"


def _add_failed_workspaces(owner: User, number: int) -> None:
    """With what makes a row long: a message, a port, a name of some length."""
    host = make_host()
    image = make_image(host, owner)
    made = Workspace.objects.bulk_create(
        Workspace(
            host=host,
            owner=owner,
            image=image,
            name=f"workspace-of-somebody-in-the-team-{one}",
            observed_status="error",
            message="The container ended with code 1: " + "no such file or directory " * 4,
        )
        for one in range(number)
    )
    Port.objects.bulk_create(Port(workspace=one, container_port=80) for one in made)
