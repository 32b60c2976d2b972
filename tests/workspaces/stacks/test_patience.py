"""How long a sync waits for what it started, and for a host that went silent meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from hosts.models import Host
from images.choices import BuildStatus
from images.models import Image
from tests.factories import api_client
from tests.workspaces.stacks.scene import WEB, fresh, last_sync
from workspaces.models import Workspace
from workspaces.stacks.choices import Phase
from workspaces.stacks.models import Stack
from workspaces.stacks.services.actions import stack_sync
from workspaces.stacks.sync.engine import work_once

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

NEED = "services: {web: {image: 'app:1'}}\nx-trailer: {needs: {postgres: %s}}\n"
AWAY = "The host local does not answer. The sync goes on when it is back."


def deployed(scene: StackScene) -> Stack:
    stack = scene.create()
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    return stack


@pytest.mark.parametrize(("options", "seconds"), [("{}", 45), ("{ready_timeout: 70s}", 70)])
def test_a_need_that_is_not_ready_in_its_time_fails_the_sync(
    scene: StackScene, options: str, seconds: int
) -> None:
    scene.repository.push(NEED % options)
    scene.slow.add("postgres")
    stack = scene.create()
    scene.work(rounds=8)
    scene.pass_time(seconds - 20)
    scene.work(rounds=2)
    assert last_sync(stack).phase == Phase.NEEDS
    scene.pass_time(21)
    scene.work(rounds=2)
    assert fresh(stack).status == "failed"
    assert fresh(stack).message == f"Need postgres was not ready within {seconds} s."
    assert not Workspace.objects.filter(service="web").exists()


def test_a_need_that_is_replaced_has_the_time_that_its_old_container_takes_to_stop(
    scene: StackScene,
) -> None:
    scene.repository.push(NEED % "{}")
    stack = deployed(scene)
    scene.slow.add("postgres")
    scene.repository.push(NEED % "{image: 'postgres:18'}")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work(rounds=8)
    scene.pass_time(45 + 60 + 55)
    scene.work(rounds=2)
    assert last_sync(stack).phase == Phase.NEEDS
    scene.pass_time(10)
    scene.work(rounds=2)
    assert fresh(stack).message == "Need postgres was not ready within 165 s."


def test_a_service_that_is_not_ready_in_its_time_is_set_back(scene: StackScene) -> None:
    stack = deployed(scene)
    scene.slow.add("web")
    bad = scene.repository.push(WEB.format(mode="two"))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work(rounds=8)
    scene.pass_time(100)
    scene.work(rounds=2)
    assert last_sync(stack).phase == Phase.SERVICES
    scene.pass_time(21)
    scene.work(rounds=2)
    assert fresh(stack).message == "Service web was not ready within 120 s."
    assert fresh(stack).failed_commit == bad
    assert {var.value for var in scene.service("web").env_vars.all()} == {"one"}


@pytest.mark.parametrize("name", ["postgres", "web"])
def test_a_host_that_goes_silent_in_the_middle_is_waited_for(scene: StackScene, name: str) -> None:
    stack = deployed(scene)
    scene.slow.add(name)
    commit = scene.repository.push(NEED % "{}")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work(rounds=12)
    phase = last_sync(stack).phase
    scene.pass_time(3600, silent=True)
    scene.work(rounds=3)
    assert (last_sync(stack).phase, fresh(stack).message) == (phase, AWAY)
    assert last_sync(stack).log.count(AWAY) == 1
    # It is back, and has its time to do what it was told.
    scene.pass_time(0)
    scene.work(rounds=2)
    assert (last_sync(stack).phase, fresh(stack).message) == (phase, "")
    scene.slow.clear()
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.deployed_commit, stack.failed_commit) == ("synced", commit, "")


def test_a_host_that_is_disabled_while_it_pulls_is_waited_for(scene: StackScene) -> None:
    stack = scene.create()
    work_once()
    while last_sync(stack).phase != Phase.PULLING:
        work_once()
    Host.objects.update(enabled=False)
    scene.pass_time(36_000)
    Stack.objects.update(due_at=timezone.now())
    work_once()
    sentence = "The host local is disabled. The sync goes on when it is back."
    assert (last_sync(stack).phase, fresh(stack).message) == (Phase.PULLING, sentence)
    Host.objects.update(enabled=True)
    Stack.objects.update(due_at=timezone.now())
    work_once()
    assert (last_sync(stack).phase, fresh(stack).message) == (Phase.PULLING, "")
    scene.work()
    assert fresh(stack).status == "synced"


def test_nothing_is_deployed_on_a_disabled_host(scene: StackScene) -> None:
    stack = deployed(scene)
    Host.objects.update(enabled=False)
    syncs = stack.syncs.count()
    for action in ("deploy", "sync", "rollback"):
        answer = api_client(scene.owner).post(f"/api/v1/stacks/{stack.pk}/{action}/", {})
        assert (answer.status_code, answer.json()["code"]) == (409, "host_disabled")
        assert answer.json()["message"] == (
            "Host local is disabled, so nothing is deployed there. Enable it first."
        )
    assert stack.syncs.count() == syncs
    offered = api_client(scene.owner).get(f"/api/v1/stacks/{stack.pk}/").json()["allowed_actions"]
    assert offered == ["delete"]


def test_a_stack_made_on_a_disabled_host_says_why_nothing_happens(scene: StackScene) -> None:
    Host.objects.update(enabled=False)
    stack = scene.create()
    scene.work()
    assert "The host local is disabled, so nothing can be deployed there." in last_sync(stack).log
    assert fresh(stack).message == "The host local is disabled, so nothing can be deployed there."


def test_a_need_is_not_given_up_before_its_host_was_heard_after_its_time(
    scene: StackScene,
) -> None:
    """A host counts as silent only after three heartbeats, which is as long as a need may take."""
    scene.repository.push(NEED % "{}")
    scene.slow.add("postgres")
    stack = scene.create()
    scene.work(rounds=8)
    scene.pass_time(20)
    scene.pass_time(30, silent=True)
    scene.work(rounds=2)
    assert (last_sync(stack).phase, fresh(stack).message) == (Phase.NEEDS, "")


def test_a_registry_that_is_away_for_a_moment_costs_no_sync(
    scene: StackScene,
) -> None:
    stack = deployed(scene)
    scene.missing.add("app:2")
    commit = scene.repository.push(WEB.format(mode="two").replace("app:1", "app:2"))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work(rounds=4)
    sentence = "The image app:2 can't be had: manifest unknown"
    assert (last_sync(stack).phase, fresh(stack).message) == (Phase.PULLING, sentence)
    scene.missing.clear()
    scene.work()
    assert (fresh(stack).status, fresh(stack).deployed_commit) == ("synced", commit)


def test_an_image_is_asked_for_again_after_1_5_and_30_seconds(scene: StackScene) -> None:
    scene.missing.add("app:1")
    stack = scene.create()
    scene.work()
    lines = last_sync(stack).log.splitlines()
    waits = [line.rpartition("Next try in ")[2] for line in lines if "Next try" in line]
    assert waits == ["1 s.", "5 s.", "30 s."]
    assert fresh(stack).message == "The image app:1 can't be had: manifest unknown"
    assert Image.objects.get().builds.count() == 4


def test_a_pull_that_somebody_cancelled_is_not_begun_again(scene: StackScene) -> None:
    stack = scene.create()
    work_once()
    image = Image.objects.get()
    image.builds.update(status=BuildStatus.CANCELLED, finished_at=timezone.now())
    Image.objects.update(status=BuildStatus.CANCELLED, message="Cancelled by Ada.")
    scene.work()
    assert fresh(stack).message == "The image app:1 can't be had: Cancelled by Ada."
    assert image.builds.count() == 1


def test_a_service_that_fails_while_nothing_was_changed_condemns_no_commit(
    scene: StackScene,
) -> None:
    stack = deployed(scene)
    web = scene.service("web")
    Workspace.objects.filter(pk=web.pk).update(observed_status="error", message="crashed")
    scene.broken.add("web")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert (fresh(stack).status, fresh(stack).failed_commit) == ("failed", "")
    Workspace.objects.filter(pk=web.pk).update(observed_status="running", message="")
    scene.pass_time(301)
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")
