"""The queue: one sync of a stack at a time, none lost, none doubled, few at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from tests.factories import make_stack
from tests.workspaces.stacks.scene import WEB, fresh, last_sync
from workspaces.models import Workspace
from workspaces.stacks.choices import Phase, Trigger
from workspaces.stacks.git.types import GitError
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.services.actions import stack_deploy, stack_rollback, stack_sync
from workspaces.stacks.sync.engine import advance, work_once
from workspaces.stacks.sync.lease import (
    LEASE,
    LeaseLost,
    claim,
    hold,
    is_any_due,
    leases_forget,
    release,
)
from workspaces.stacks.sync.queue import polls_bring_forward, sync_request
from workspaces.stacks.sync.work import Work

if TYPE_CHECKING:
    from django.conf import LazySettings
    from pytest_django import DjangoAssertNumQueries

    from tests.workspaces.stacks.scene import StackScene


def test_asking_twice_before_it_begins_is_asking_once(scene: StackScene) -> None:
    stack = scene.create()
    second = stack_sync(actor=scene.owner, stack=stack)
    third = stack_deploy(actor=scene.owner, stack=stack)
    assert second.pk == third.pk
    assert (third.forced, third.trigger) == (True, "deploy")
    assert Sync.objects.count() == 1


def test_asking_during_a_sync_runs_again_afterwards(scene: StackScene) -> None:
    stack = scene.create()
    work_once()
    assert last_sync(stack).phase == Phase.PULLING
    commit = scene.repository.push(WEB.format(mode="two"))
    behind = stack_sync(actor=scene.owner, stack=stack)
    assert stack_sync(actor=scene.owner, stack=stack).pk == behind.pk
    scene.work()
    assert Sync.objects.get(pk=behind.pk).outcome == "deployed"
    assert fresh(stack).deployed_commit == commit


@pytest.mark.parametrize("trigger", [Trigger.WEBHOOK, Trigger.SYNC, Trigger.CHANGED])
def test_a_push_does_not_take_the_place_of_a_rollback_that_waits(
    scene: StackScene, trigger: Trigger
) -> None:
    stack = scene.create()
    scene.work()
    first = fresh(stack).deployed_commit
    scene.repository.push(WEB.format(mode="bad"))
    stack_deploy(actor=scene.owner, stack=stack)
    work_once()
    behind = stack_rollback(actor=scene.owner, stack=stack, commit=first)
    scene.repository.push(WEB.format(mode="worse"))
    assert sync_request(stack.pk, trigger=trigger).pk == behind.pk
    scene.work()
    sync = Sync.objects.get(pk=behind.pk)
    assert (sync.trigger, sync.outcome, sync.forced) == ("rollback", "deployed", False)
    assert (fresh(stack).deployed_commit, fresh(stack).pinned) == (first, True)
    assert {var.value for var in scene.service("web").env_vars.all()} == {"one"}


def test_a_deploy_takes_the_place_of_a_rollback_that_waits(scene: StackScene) -> None:
    stack = scene.create()
    scene.work()
    commit = scene.repository.push(WEB.format(mode="two"))
    behind = stack_rollback(actor=scene.owner, stack=stack, revision=1)
    assert stack_deploy(actor=scene.owner, stack=stack).pk == behind.pk
    scene.work()
    assert (fresh(stack).deployed_commit, fresh(stack).pinned) == (commit, False)


def test_the_database_refuses_a_second_running_sync(scene: StackScene) -> None:
    stack = make_stack(scene.host, scene.owner)
    values = {"stack": stack, "trigger": Trigger.SYNC, "phase_at": timezone.now()}
    Sync.objects.create(number=2, phase=Phase.FETCHING, **values)
    with pytest.raises(IntegrityError), transaction.atomic():
        Sync.objects.create(number=3, phase=Phase.SERVICES, **values)


def test_a_stack_is_claimed_by_one_worker_only(scene: StackScene) -> None:
    scene.create()
    now = timezone.now()
    assert claim(now) is not None
    assert claim(now) is None


def test_looking_for_work_where_there_is_none_takes_no_lock(
    scene: StackScene, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1) as asked:
        assert claim(timezone.now()) is None
    assert asked.captured_queries[0]["sql"].startswith("SELECT")


def test_a_dead_workers_stack_is_taken_over_and_it_can_no_longer_write(scene: StackScene) -> None:
    stack = scene.create()
    now = timezone.now()
    dead = claim(now)
    assert dead is not None
    heir = claim(now + LEASE)
    assert heir is not None
    with pytest.raises(LeaseLost):
        hold(dead, now)
    with pytest.raises(LeaseLost):
        advance(dead)
    release(dead)
    assert fresh(stack).lease_token == heir.token
    advance(heir)
    assert last_sync(stack).phase == Phase.PULLING


@pytest.mark.parametrize("phase", [Phase.FETCHING, Phase.PREPARING, Phase.PULLING, Phase.SERVICES])
def test_a_worker_killed_in_any_phase_leaves_nothing_that_a_second_one_can_not_finish(
    scene: StackScene, phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = scene.create()
    written = Work.set

    def dying(work: Work, **columns: object) -> None:
        written(work, **columns)
        if work.sync.phase == phase:
            raise KeyboardInterrupt

    monkeypatch.setattr(Work, "set", dying)
    with pytest.raises(KeyboardInterrupt):
        scene.work()
    monkeypatch.undo()
    scene.repository_again(monkeypatch)
    leases_forget()
    Stack.objects.update(due_at=timezone.now())
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    assert Workspace.objects.filter(stack=stack.pk).count() == 1
    assert scene.service("web").revision == 1


def test_git_that_is_away_is_asked_again_after_1_5_and_30_seconds_while_others_go_on(
    scene: StackScene,
) -> None:
    scene.repository.problem = GitError("Git is away.")
    stack = scene.create(name="patient")
    work_once()
    assert (fresh(stack).status, fresh(stack).lease_token) == ("syncing", None)
    other = scene.create(name="other")
    scene.work()
    lines = last_sync(stack).log.splitlines()
    assert [line.rpartition("Next try in ")[2] for line in lines if "Next try" in line] == [
        "1 s.",
        "5 s.",
        "30 s.",
    ]
    assert (fresh(stack).status, fresh(other).status) == ("failed", "failed")
    began, ended = last_sync(other).started_at, last_sync(stack).finished_at
    assert began is not None
    assert ended is not None
    assert began < ended


def test_a_sync_that_waits_for_its_next_try_is_not_due_by_a_poll_that_is(
    scene: StackScene,
) -> None:
    scene.repository.problem = GitError("Git is away.")
    stack = scene.create()
    work_once()
    asked = scene.repository.fetched
    Stack.objects.filter(pk=stack.pk).update(poll_at=timezone.now())
    assert not work_once()
    assert not is_any_due(timezone.now())
    assert (scene.repository.fetched, last_sync(stack).attempt) == (asked, 1)
    assert is_any_due(timezone.now() + timedelta(seconds=1))


def test_only_so_many_stacks_are_worked_on_at_once(
    scene: StackScene, settings: LazySettings
) -> None:
    settings.TRAILER_STACK_PARALLEL = 2
    for name in ("a", "b", "c"):
        scene.create(name=name)
    now = timezone.now()
    leases = [claim(now), claim(now), claim(now)]
    assert [lease is not None for lease in leases] == [True, True, False]
    assert leases[0] is not None
    release(leases[0])
    Stack.objects.filter(pk=leases[0].stack_id).update(due_at=None)
    assert claim(now) is not None


def test_a_poll_finds_a_commit_and_leaves_no_trace_when_there_is_none(scene: StackScene) -> None:
    stack = scene.create()
    scene.work()
    assert fresh(stack).poll_at is not None
    for _ in range(2):
        Stack.objects.update(poll_at=timezone.now())
        scene.work()
    assert Sync.objects.count() == 1
    commit = scene.repository.push(WEB.format(mode="two"))
    Stack.objects.update(poll_at=timezone.now())
    scene.work()
    assert (fresh(stack).deployed_commit, last_sync(stack).trigger) == (commit, "poll")


def test_a_stack_that_can_not_be_looked_at_says_so_and_lets_the_others_have_their_turn(
    scene: StackScene,
) -> None:
    stack, other = scene.create(name="broken"), scene.create(name="other")
    scene.work()
    Stack.objects.filter(pk=stack.pk).update(secret_variables_token="unreadable")
    commit = scene.repository.push(WEB.format(mode="two"))
    scene.pass_time(400)
    Stack.objects.filter(pk=stack.pk).update(poll_at=F("poll_at") - timedelta(seconds=5))
    scene.work()
    assert fresh(other).deployed_commit == commit
    stack = fresh(stack)
    assert stack.status == "failed"
    assert "can't be read with the present keys." in stack.message
    assert stack.poll_at is not None
    assert stack.poll_at > timezone.now()


def test_a_stack_without_polls_is_looked_at_when_the_server_starts(scene: StackScene) -> None:
    stack = scene.create(poll_interval=0)
    scene.work()
    assert fresh(stack).poll_at is None
    commit = scene.repository.push(WEB.format(mode="two"))
    scene.work()
    assert fresh(stack).deployed_commit != commit
    polls_bring_forward(timezone.now())
    scene.work()
    assert (fresh(stack).deployed_commit, fresh(stack).poll_at) == (commit, None)


def test_a_start_during_a_sync_looks_once_that_is_over(scene: StackScene) -> None:
    """What was pushed while the server was away came after the sync had its files."""
    stack = scene.create(poll_interval=0)
    work_once()
    commit = scene.repository.push(WEB.format(mode="two"))
    polls_bring_forward(timezone.now())
    scene.work()
    assert (fresh(stack).deployed_commit, fresh(stack).poll_at) == (commit, None)


def test_a_sync_of_a_stack_that_was_deleted_ends_quietly(scene: StackScene) -> None:
    stack = scene.create()
    lease = claim(timezone.now())
    assert lease is not None
    Stack.objects.filter(pk=stack.pk).delete()
    with pytest.raises(LeaseLost):
        advance(lease)


def test_only_the_newest_syncs_are_kept(scene: StackScene) -> None:
    stack = make_stack(scene.host, scene.owner)
    long_ago = timezone.now() - timedelta(days=9)
    for number in range(2, 130):
        Sync.objects.create(
            stack=stack, number=number, trigger="poll", phase=Phase.DONE, phase_at=long_ago
        )
    sync_request(stack.pk, trigger=Trigger.SYNC)
    assert Sync.objects.count() == 100
