"""Two users at once: the database lets one through, the other gets a sentence."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tests.workspaces.scene import Scene, make_scene
from trailer.errors import Conflict, Invalid
from workspaces.models import Event, Port, Revision, Workspace
from workspaces.services import workspace_create, workspace_update

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Results or refusals of calls that begin together, each on its own connection."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        except (Invalid, Conflict) as refusal:
            return refusal
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def creating(scene: Scene, **fields: Any) -> Callable[[], Workspace]:
    return lambda: workspace_create(actor=scene.owner, data=scene.body(**fields))


def test_one_of_two_gets_the_host_port() -> None:
    scene = make_scene()
    ports = [{"container_port": 80, "host_port": 8080}]
    results = at_once(*(creating(scene, name=f"box-{n}", ports=ports) for n in range(4)))
    refusals = [result for result in results if isinstance(result, Invalid)]
    assert len(refusals) == 3
    assert all("ports.0.host_port" in refusal.fields for refusal in refusals)
    assert Port.objects.count() == Workspace.objects.count() == 1


def test_one_of_two_gets_the_name() -> None:
    scene = make_scene()
    results = at_once(*(creating(scene) for _ in range(4)))
    assert sum(isinstance(result, Workspace) for result in results) == 1
    assert Workspace.objects.count() == Event.objects.count() == 1


def test_edits_at_once_each_get_their_own_revision() -> None:
    scene = make_scene()
    workspace = scene.create()

    def edit(n: int) -> Callable[[], Any]:
        data = {"description": f"edit {n}"}
        return lambda: workspace_update(actor=scene.owner, workspace=workspace, data=data)

    at_once(*(edit(n) for n in range(4)))
    assert Workspace.objects.get().revision == 5
    assert sorted(Revision.objects.values_list("revision", flat=True)) == [1, 2, 3, 4, 5]


def test_of_two_edits_of_the_same_revision_one_is_refused() -> None:
    scene = make_scene()
    workspace = scene.create()

    def edit(n: int) -> Callable[[], Any]:
        return lambda: workspace_update(
            actor=scene.owner,
            workspace=workspace,
            data={"description": f"edit {n}"},
            expected_revision=1,
        )

    results = at_once(edit(1), edit(2))
    assert sum(isinstance(result, Conflict) for result in results) == 1
    assert Workspace.objects.get().revision == 2
