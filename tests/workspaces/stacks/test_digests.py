"""The quick check's third look: whom it asks, how often, and what an answer changes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from hosts.models import Host
from images.models import Image
from tests.workspaces.stacks.scene import fresh, last_sync
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.services.actions import stack_sync
from workspaces.stacks.sync.check import Findings, decide
from workspaces.stacks.sync.digests import is_due

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

TWO_POLICIES = """\
services:
  web: {image: 'app:1'}
  job: {image: 'job:1', x-trailer: {update_policy: if_missing}}
  own: {image: 'pinned@sha256:%064d'}
"""


def asked(reference: str) -> int:
    return Image.objects.get(reference=reference).check_requested


def deployed(scene: StackScene, **fields: object) -> Stack:
    scene.repository.push(TWO_POLICIES % 0)
    stack = scene.create(**fields)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    return stack


def test_a_sync_by_hand_has_the_host_ask_for_what_follows_its_registry(scene: StackScene) -> None:
    stack = deployed(scene)
    version = Host.objects.get().desired_version
    fetched, asked_git = scene.repository.fetched, scene.repository.asked
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert (asked("app:1"), asked("job:1")) == (1, 0)
    assert Image.objects.filter(check_requested__gt=0).count() == 1
    assert Host.objects.get().desired_version == version + 1
    # One ls-remote and no fetch: the answer to this question is waited for by nobody.
    assert (scene.repository.asked, scene.repository.fetched) == (asked_git + 1, fetched)
    assert last_sync(stack).outcome == "unchanged"
    assert "The host compares with the registry: app:1." in last_sync(stack).log


def test_asking_again_at_once_asks_no_registry_again(scene: StackScene) -> None:
    stack = deployed(scene)
    for _ in range(3):
        stack_sync(actor=scene.owner, stack=stack)
        scene.work()
    assert asked("app:1") == 1


@pytest.mark.parametrize(("poll", "times"), [(300, 0), (60, 1)])
def test_a_poll_asks_only_when_the_host_itself_looks_less_often(
    scene: StackScene, poll: int, times: int
) -> None:
    deployed(scene, poll_interval=poll)
    assert Host.objects.get().update_interval == 300
    Stack.objects.update(poll_at=timezone.now())
    scene.work()
    assert asked("app:1") == times
    assert Sync.objects.count() == 1


@pytest.mark.parametrize(
    ("poll", "ago", "by_hand", "due"),
    [
        (300, None, False, False),
        (299, None, False, True),
        (0, None, False, False),
        (0, None, True, True),
        (300, 9, True, False),
        (300, 10, True, True),
        (1, 5, False, False),
    ],
)
def test_when_registries_are_asked(poll: int, ago: int | None, by_hand: bool, due: bool) -> None:
    now = timezone.now()
    before = None if ago is None else now - timedelta(seconds=ago)
    stack = Stack(poll_interval=poll, host=Host(update_interval=300), registries_asked_at=before)
    assert is_due(stack, now, by_hand=by_hand) is due


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (Findings(is_first=True, commit="a"), "Nothing is deployed yet"),
        (Findings(down=["web"], commit="a"), "Not running: web"),
        (Findings(commit="b"), "moved to b"),
        (Findings(git_problem="It is away."), "could not be asked: It is away."),
        (Findings(commit="a", newer_images=["app:1"]), "has a newer app:1"),
        (Findings(commit="a", variables_changed=True), "variables changed"),
        (Findings(commit="a"), ""),
    ],
)
def test_the_quick_check_decides(found: Findings, word: str) -> None:
    reason = decide(found, known={"a"}, branch="main")
    assert (word in reason) if word else reason == ""
