"""What was gained by a right goes with it: every way to lose one × every kind of object × every
door through which a new container could come. No cell is open.

A cell asserts that its door is refused with a sentence, or that the agent is told not to make or
start anything. What runs goes on, and stopping always works.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from agent.protocol.state import decode_state
from hosts.models import RollupMark
from images.models import Image
from tests.factories import (
    api_client,
    make_capability,
    make_user,
)
from tests.workspaces.agent_client import AgentClient, etag_of
from tests.workspaces.lost_rights import CELLS, Gained, act, edit, gained, loss_of, run, seen
from tests.workspaces.scene import URL
from trailer.access.models import Capability
from trailer.errors import ApplicationError
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.models import Event, Timer, Workspace
from workspaces.selectors import workspace_get
from workspaces.services.change import change_prepare, change_retry
from workspaces.services.run import run_locked
from workspaces.timers.verdict import IDLE
from workspaces.timers.watch import timers_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


pytestmark = pytest.mark.django_db


# --- doors -----------------------------------------------------------------------------------


def refused(answer: Any) -> None:
    assert answer.status_code in (400, 403, 404, 409), (answer.status_code, answer.content)
    assert answer.json()["message"].endswith("."), answer.content


def blocked(answer: Any) -> None:
    assert (answer.status_code, answer.json()["code"]) == (409, "blocked"), answer.content
    assert " may " in answer.json()["message"]


def redeploy(scene: Gained) -> None:
    blocked(act(scene.mias, scene, "redeploy"))


def redeploy_by_an_administrator(scene: Gained) -> None:
    """Who may do everything gives nothing to mia by pressing a button."""
    blocked(act(scene.bosss, scene, "redeploy"))


def plan_of_a_redeploy(scene: Gained) -> None:
    blocked(act(scene.mias, scene, "redeploy/plan"))


def edit_that_replaces(scene: Gained) -> None:
    blocked(edit(scene.mias, scene, command=["sleep", "1"]))


def plan_of_an_edit(scene: Gained) -> None:
    blocked(act(scene.mias, scene, "plan", command=["sleep", "1"]))


def edit_of_an_administrator(scene: Gained) -> None:
    blocked(edit(scene.bosss, scene, command=["sleep", "1"]))


def rollback(scene: Gained) -> None:
    blocked(act(scene.mias, scene, "rollback", revision=scene.workspace.revision - 1))


def stopped(scene: Gained) -> None:
    answer = act(scene.mias, scene, "stop")
    assert answer.status_code == 202, answer.content
    seen(scene, "stopped")


def start(scene: Gained) -> None:
    blocked(act(scene.mias, scene, "start"))


def start_by_an_administrator(scene: Gained) -> None:
    blocked(act(scene.bosss, scene, "start"))


def start_by_an_edit(scene: Gained) -> None:
    blocked(edit(scene.mias, scene, desired_state="running"))


def start_once_more(scene: Gained) -> None:
    """Its container is gone, and the same is asked for again."""
    seen(scene, "error", container_id="")
    blocked(act(scene.mias, scene, "start"))


def schedule(scene: Gained) -> None:
    line = {"start": "* * * * *"}
    assert edit(scene.mias, scene, schedule=line).status_code == 200
    earlier = timezone.now() - timedelta(hours=1)
    Timer.objects.update_or_create(workspace=scene.workspace, defaults={"settled_at": earlier})
    RollupMark.objects.filter(family="timers").delete()
    assert timers_run(timezone.now())
    assert Workspace.objects.get(name="box").desired_state == "stopped"
    [told] = Event.objects.filter(workspace=scene.workspace, kind="start_refused")
    assert " may " in told.cause


def idle_timer(scene: Gained) -> None:
    """It stops what runs, and what it stopped does not come back."""
    run_locked(scene.workspace, DesiredState.STOPPED, actor=None, by=IDLE)
    seen(scene, "stopped")
    blocked(act(scene.mias, scene, "start"))


def clone(scene: Gained) -> None:
    refused(act(scene.mias, scene, "clone", name="copy"))
    assert Workspace.objects.count() == 1


def new_workspace(scene: Gained) -> None:
    refused(scene.mias.post(URL, scene.body(name="second")))
    assert Workspace.objects.count() == 1


def out_and_in_again(scene: Gained) -> None:
    if scene.kind == "place":
        return
    assert edit(scene.mias, scene, **scene.without()).status_code == 200
    answer = edit(scene.mias, scene, **scene.parts())
    if scene.kind in ("bind", "addresses") and answer.status_code == 200:
        # It may be put there, and not be started.
        answer = act(scene.mias, scene, "start")
    refused(answer)


def snapshot(scene: Gained) -> None:
    """Volumes, networks and settings are not part of a snapshot; an image is."""
    answer = act(scene.mias, scene, "snapshot", name="saved")
    if scene.kind == "image":
        blocked(answer)
        assert not Image.objects.filter(kind="snapshot").exists()
    elif scene.kind != "place":
        assert answer.status_code == 202, answer.content


def restore_of_a_snapshot(scene: Gained) -> None:
    if scene.kind == "image":
        return
    blocked(edit(scene.mias, scene, image=str(scene.other_image.pk)))


def sync_of_a_stack(scene: Gained) -> None:
    """Its two ways to write a service: changed, and tried again."""
    current = workspace_get(scene.workspace.pk)
    other = replace(fields_of(current), command=("x",))
    ways: tuple[Callable[[], object], ...] = (
        lambda: change_prepare(actor=scene.mia, workspace=current, fields=other),
        lambda: change_retry(current),
    )
    for way in ways:
        with pytest.raises(ApplicationError) as refusal:
            way()
        assert " may " in refusal.value.message


def hand_over_of_the_workspace(scene: Gained) -> None:
    heir = make_user("heir")
    make_capability(scene.host, heir, Capability.VIEW)
    if scene.kind == "place":
        return
    with override_settings(TRAILER_OPEN_HOSTS=True):
        answer = act(scene.bosss, scene, "transfer", owner="heir")
    assert answer.status_code == 202, answer.content
    if scene.kind == "bind":
        # mia, who owns the folder, is who lost the right to it.
        assert scene.thing.owner_id == scene.by.pk
    blocked(act(api_client(heir), scene, "redeploy"))


DOORS = (
    redeploy,
    redeploy_by_an_administrator,
    plan_of_a_redeploy,
    edit_that_replaces,
    edit_of_an_administrator,
    plan_of_an_edit,
    rollback,
    start_once_more,
    idle_timer,
    clone,
    new_workspace,
    snapshot,
    restore_of_a_snapshot,
    sync_of_a_stack,
    hand_over_of_the_workspace,
)
# Of one that was stopped since.
DOORS_OF_A_STOPPED_ONE = (
    start,
    start_by_an_administrator,
    start_by_an_edit,
    schedule,
    out_and_in_again,
)


@contextmanager
def undone() -> Iterator[None]:
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


def open_doors(scene: Gained, doors: Iterable[Callable[[Gained], None]]) -> list[str]:
    found = []
    for door in doors:
        with undone():
            scene.workspace = workspace_get(scene.workspace.pk)
            try:
                door(scene)
            except AssertionError as error:
                found.append(f"{door.__name__}: {error}")
    return found


def told(agent: AgentClient, etag: str = "") -> tuple[str, str, int]:
    """(desired state, why it is blocked, the document's version) by a real poll."""
    answer = agent.get_state(etag)
    assert answer.status_code == 200, "the agent was not told that something changed"
    state = decode_state(answer.content)
    [row] = state.workspaces
    return row.desired_state, row.blocked, state.version


@pytest.mark.parametrize(("kind", "name", "by_admin"), CELLS)
def test_after_a_revocation_no_door_makes_or_starts_a_container(
    kind: str, name: str, by_admin: bool
) -> None:
    with override_settings(TRAILER_OPEN_HOSTS=kind != "place"):
        scene = gained(kind, by_admin=by_admin)
        gives, loses = loss_of(kind, name)
        gives(scene)
        run(scene)
        # Before the first cell that is put back: their tokens stay.
        assert scene.mias
        assert scene.bosss
        agent = AgentClient(scene.host)
        etag = etag_of(agent.get_state())
        state, why, version = told(agent)
        assert (state, why) == ("running", ""), "it was there by right"
        loses(scene)
        # Healing, a moved image and a reboot go by what the agent is told.
        state, why, newer = told(agent, etag)
        assert state == "running", "what runs is not stopped"
        assert " may " in why, "the agent is not told to make nothing"
        assert newer > version
        scene.workspace = workspace_get(scene.workspace.pk)
        scene.mia.refresh_from_db()
        found = open_doors(scene, DOORS)
        with undone():
            stopped(scene)
            found += open_doors(scene, DOORS_OF_A_STOPPED_ONE)
        assert found == []
        scene.workspace = workspace_get(scene.workspace.pk)
        # A small edit, and stopping, always work; so does going on without.
        assert edit(scene.mias, scene, description="x").status_code == 200
        stopped(scene)
        if kind != "place":
            assert edit(scene.mias, scene, **scene.without()).status_code == 200
            assert act(scene.mias, scene, "start").status_code == 202
            assert told(agent)[1] == ""
