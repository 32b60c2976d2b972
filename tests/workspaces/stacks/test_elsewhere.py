"""Stacks that leave the newest commit of their source: by a rollback, or for another source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.workspaces.stacks.scene import WEB, fresh
from workspaces.stacks.git.types import GitError
from workspaces.stacks.services.actions import stack_deploy, stack_rollback, stack_sync
from workspaces.stacks.services.stacks import stack_update
from workspaces.stacks.status import stack_badge

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from workspaces.stacks.models import Stack

TWO = WEB.format(mode="two")


def deployed(scene: StackScene) -> Stack:
    stack = scene.create()
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.message) == ("synced", "")
    return stack


def test_another_path_without_a_file_is_failed_until_there_is_one(scene: StackScene) -> None:
    stack = deployed(scene)
    scene.repository.problem = GitError("There is no stack file in nowhere.")
    stack_update(actor=scene.owner, stack=stack, path="nowhere")
    scene.work()
    assert fresh(stack).status == "failed"
    # The branch is where it was; the stack's files are not.
    scene.repository.only_fetch = True
    for _ in range(2):
        scene.pass_time(301)
        scene.work()
        assert (fresh(stack).status, fresh(stack).message) == (
            "failed",
            "There is no stack file in nowhere.",
        )
    assert scene.service("web").revision == 1
    scene.repository.problem = None
    scene.pass_time(301)
    scene.work()
    assert (fresh(stack).status, scene.service("web").revision) == ("synced", 1)
    asked = scene.repository.fetched
    scene.pass_time(301)
    scene.work()
    assert scene.repository.fetched == asked


def test_a_commit_that_failed_is_tried_again_from_another_source(scene: StackScene) -> None:
    stack = deployed(scene)
    scene.broken.add("two")
    commit = scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).failed_commit == commit
    scene.repository.problem = GitError("Git is away.")
    stack_update(actor=scene.owner, stack=stack, path="elsewhere")
    scene.work()
    scene.repository.problem = None
    scene.broken.clear()
    scene.pass_time(301)
    scene.work()
    assert (fresh(stack).status, fresh(stack).deployed_commit) == ("synced", commit)


def test_a_rollback_is_pinned_until_a_deploy(scene: StackScene) -> None:
    stack = deployed(scene)
    first = stack.deployed_commit
    second = scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    scene.repository.problem = GitError("Git is away.")
    stack_rollback(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.deployed_commit, stack.pinned, stack.status) == (first, True, "out_of_sync")
    assert {var.value for var in scene.service("web").env_vars.all()} == {"one"}
    scene.repository.problem = None
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).deployed_commit == first
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.deployed_commit, stack.pinned, stack.status) == (second, False, "synced")


def test_a_rollback_that_fails_pins_nothing(scene: StackScene) -> None:
    stack = deployed(scene)
    second = scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    scene.broken.add("one")
    stack_rollback(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.deployed_commit, stack.pinned) == ("failed", second, False)
    third = scene.repository.push(WEB.format(mode="three"))
    scene.pass_time(301)
    scene.work()
    assert (fresh(stack).status, fresh(stack).deployed_commit) == ("synced", third)


def test_variables_of_the_stack_take_effect_and_can_be_rolled_back(scene: StackScene) -> None:
    scene.repository.push(WEB.format(mode="'${config.MODE}'"))
    stack = scene.create(variables={"MODE": "a"})
    scene.work()
    stack_update(actor=scene.owner, stack=stack, variables={"MODE": "b"})
    scene.work()
    assert {var.value for var in scene.service("web").env_vars.all()} == {"b"}
    stack_rollback(actor=scene.owner, stack=fresh(stack), revision=1)
    scene.work()
    assert {var.value for var in scene.service("web").env_vars.all()} == {"a"}


def test_rollback_is_offered_once_something_was_deployed(scene: StackScene) -> None:
    scene.repository.problem = GitError("The repository can't be reached.")
    stack = scene.create()
    scene.work()
    assert "rollback" not in stack_badge(fresh(stack)).actions
    scene.repository.problem = None
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    assert stack_badge(fresh(stack)).actions == ("deploy", "sync", "rollback", "delete")
