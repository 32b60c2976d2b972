"""The command palette's answers: what fits, for whom, and never more than a screenful."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import make_image, make_network, make_volume, make_workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def titles(client: Client, query: str) -> list[str]:
    answer = client.get("/search/", {"q": query})
    assert answer.status_code == 200
    rows = re.findall(
        r'role="option".*?<span class="truncate">(.*?)</span>', answer.content.decode(), re.DOTALL
    )
    return [str(row) for row in rows]


def test_every_kind_of_object_is_found_by_its_name(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, "needle-image")
    make_workspace(host, owner, "needle-workspace", image=image)
    make_network(host, owner, "needle-network")
    make_volume(host, owner, "needle-volume")
    make_workspace(host, owner, "other", image=make_image(host, owner, "hay"))
    found = titles(client, "NEEDLE")
    for kind in ("workspace", "image", "network", "volume"):
        assert f"needle-{kind}" in found
    assert "other" not in found
    assert host.name in titles(client, host.name)


def test_every_word_must_fit_and_a_name_that_begins_with_it_comes_first(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, "plain")
    for name in ("my-web", "web-two", "db"):
        make_workspace(host, owner, name, image=image)
    assert titles(client, "web")[:2] == ["web-two", "my-web"]
    assert titles(client, "web two")[0] == "web-two"
    assert "db" not in titles(client, "web")


def test_a_verb_gives_the_actions_that_the_status_allows(
    client: Client, host: Host, owner: User
) -> None:
    running = make_workspace(host, owner, "web", observed_status="running", observed_revision=1)
    make_workspace(host, owner, "web-old", observed_status="stopped", observed_revision=1)
    assert titles(client, "stop web") == ["Stop web"]
    assert titles(client, "start web") == ["Start web-old"]
    assert titles(client, "logs web") == ["Logs of web", "Logs of web-old"]
    html = client.get("/search/", {"q": "stop web"}).content.decode()
    assert f'data-run="stop" data-on="workspace:{running.pk}"' in html
    html = client.get("/search/", {"q": "terminal web"}).content.decode()
    assert f'data-address="/workspaces/{running.pk}/?tab=terminal"' in html


def test_pages_are_found_and_nothing_typed_shows_them_all(client: Client) -> None:
    assert "Networks" in titles(client, "netw")
    assert {"Dashboard", "Workspaces", "New workspace"} <= set(titles(client, ""))
    assert "Admin" not in titles(client, "admin")


def test_what_others_own_is_not_found(
    client: Client, host: Host, stranger: User, owner: User
) -> None:
    make_workspace(host, stranger, "hidden-thing")
    assert titles(client, "hidden") == []
    assert titles(client, "logs hidden") == []
    assert Client().get("/search/?q=x").status_code == 302


def test_the_answer_is_bounded_and_costs_a_fixed_number_of_queries(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner)

    def cost(query: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert len(titles(client, query)) <= 40
        return len(caught)

    make_workspace(host, owner, "many-first", image=image)
    few = {query: cost(query) for query in ("many", "logs many", "stop many", "")}
    for number in range(40):
        make_workspace(host, owner, f"many-{number}", image=image)
        make_network(host, owner, f"many-{number}")
    assert {query: cost(query) for query in few} == few
    assert titles(client, "x" * 5000) == []
    assert "&lt;script" in client.get("/search/", {"q": "<script>"}).content.decode()
