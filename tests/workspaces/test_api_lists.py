"""The list of workspaces over REST: filters, search, order, pages, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.factories import make_host, make_image
from tests.workspaces.scene import URL, observe
from workspaces.models import Workspace
from workspaces.services import workspace_stop

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from tests.workspaces.scene import Scene


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json()
    return [row["name"] for row in answer.json()["results"]]


def test_lists_are_filtered_searched_ordered_and_paged(scene: Scene) -> None:
    other = make_host("other")
    image = make_image(other, scene.owner)
    scene.create(name="alpha", description="the first")
    beta = scene.create(name="beta", host=str(other.pk), image=str(image.pk))
    gamma = scene.create(name="gamma")
    observe(beta)
    workspace_stop(actor=scene.owner, workspace=gamma)
    stack = uuid4()
    Workspace.objects.filter(name="gamma").update(stack=stack)
    client = scene.client()
    for query, expected in (
        ({}, ["alpha", "beta", "gamma"]),
        ({"host": str(other.pk)}, ["beta"]),
        ({"image": str(image.pk)}, ["beta"]),
        ({"name": "alpha"}, ["alpha"]),
        ({"stack": str(stack)}, ["gamma"]),
        ({"status": "running"}, ["beta"]),
        ({"status": "stopping"}, ["gamma"]),
        ({"status": "deployment_pending"}, ["alpha"]),
        ({"status": "error"}, []),
        ({"search": "FIRST"}, ["alpha"]),
        ({"search": "am"}, ["gamma"]),
        ({"ordering": "-name"}, ["gamma", "beta", "alpha"]),
        ({"ordering": "-status,name"}, ["gamma", "beta", "alpha"]),
        ({"ordering": "created_at"}, ["alpha", "beta", "gamma"]),
        ({"page_size": 2, "page": 2}, ["gamma"]),
        ({"status": "", "host": ""}, ["alpha", "beta", "gamma"]),
    ):
        assert names(client.get(URL, query)) == expected, query
    answer = client.get(URL, {"page_size": 2}).json()
    assert (answer["count"], answer["previous"]) == (3, None)
    assert "page=2" in answer["next"]


@pytest.mark.parametrize(
    "query",
    [
        {"host": "x"},
        {"host": "1"},
        {"image": "'"},
        {"stack": "null"},
        {"status": "Running"},
        {"status": "broken"},
        {"name": "a\0"},
        {"search": "\0"},
        {"ordering": "owner__password"},
        {"ordering": "secret_env"},
        {"page": "0"},
        {"page": "x"},
        {"page": "9" * 30},
    ],
)
def test_a_filter_without_meaning_is_refused(scene: Scene, query: dict[str, str]) -> None:
    answer = scene.client().get(URL, query)
    assert answer.status_code in (400, 404)
    assert answer.json()["message"]


def test_the_list_costs_the_same_for_one_and_for_many(
    scene: Scene, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = scene.client()

    def fill(n: int) -> None:
        port, url = {"container_port": 80}, {"domain": "example.com", "port": 80}
        scene.create_full(name=f"box-{n}", ports=[port], urls=[{**url, "subdomain": f"box-{n}"}])

    fill(0)
    client.get(URL)
    # Token, count, rows, and one for each kind of part (mounts bring their volumes).
    with django_assert_num_queries(10):
        assert len(client.get(URL).json()["results"]) == 1
    for n in range(1, 9):
        fill(n)
    with django_assert_num_queries(10):
        assert len(client.get(URL).json()["results"]) == 9
