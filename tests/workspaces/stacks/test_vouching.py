"""Whose rights a stack's file is judged by: its owner's, and those of whoever chose its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hosts.models import Volume
from tests.factories import make_admin, make_bind, make_grant, make_network, make_user, make_volume
from tests.workspaces.stacks.scene import WEB, fresh
from trailer.access.models import Role
from workspaces.models import Workspace
from workspaces.stacks.models import StackRevision
from workspaces.stacks.services.actions import stack_deploy, stack_sync
from workspaces.stacks.services.stacks import stack_update

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from trailer.accounts.models import User
    from workspaces.stacks.models import Stack

BIND = "services: {web: {image: 'app:1', volumes: ['/srv/shop:/data']}}\n"
EXTERNAL = """\
services: {web: {image: 'app:1', volumes: ['%s:/data']}}
volumes: {%s: {external: true}}
"""
NETWORK = """\
services: {web: {image: 'app:1', networks: [inner]}}
networks: {inner: {external: true}}
"""
ELSEWHERE = "https://git.example.com/other.git"


@pytest.fixture
def manager(scene: StackScene) -> User:
    return make_user("manager")


def stack_of_admin(scene: StackScene, manager: User, text: str) -> Stack:
    scene.owner = make_admin()
    scene.repository.push(text)
    stack = scene.create()
    make_grant(stack, manager, Role.MANAGER)
    scene.work()
    return fresh(stack)


def test_an_owner_without_the_capability_has_no_folder_of_the_host_mounted(
    scene: StackScene,
) -> None:
    scene.repository.push(BIND)
    stack = scene.create()
    scene.work()
    assert fresh(stack).status == "failed"
    assert "may not mount folders of this host" in fresh(stack).message
    assert not Volume.objects.exists()


def test_a_folder_that_is_mounted_already_needs_the_capability_too(scene: StackScene) -> None:
    stack = stack_of_admin(scene, make_user("other"), BIND)
    assert (stack.status, stack.message) == ("synced", "")
    type(scene.owner).objects.filter(pk=scene.owner.pk).update(is_superuser=False)
    scene.repository.push(BIND + "# again\n")
    stack_sync(actor=stack.owner, stack=stack)
    scene.work()
    assert "may not mount folders of this host" in fresh(stack).message
    assert scene.service("web").revision == 1


@pytest.mark.parametrize("name", ["bind", "external", "network", "folder"])
def test_a_manager_gets_no_right_of_the_owner_by_another_repository(
    scene: StackScene, manager: User, name: str
) -> None:
    stack = stack_of_admin(scene, manager, WEB.format(mode="one"))
    make_volume(scene.host, scene.owner, "ledger")
    make_bind(scene.host, scene.owner, name="etc")
    make_network(scene.host, scene.owner, "inner")
    texts = {"bind": BIND, "external": EXTERNAL % ("ledger", "ledger"), "network": NETWORK}
    texts["folder"] = EXTERNAL % ("etc", "etc")
    stack_update(actor=manager, stack=stack, repository=ELSEWHERE)
    scene.repository.push(texts[name])
    scene.work()
    assert fresh(stack).status == "failed", fresh(stack).message
    assert "changed where the files of the stack come from" in fresh(stack).message
    assert not Workspace.objects.get().mounts.exists()
    # The owner's own deploy makes the manager's source no better.
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).status == "failed"
    stack_update(actor=scene.owner, stack=fresh(stack), repository=f"{ELSEWHERE}/")
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")


def test_a_volume_that_the_manager_may_only_read_is_not_written(
    scene: StackScene, manager: User
) -> None:
    stack = stack_of_admin(scene, manager, WEB.format(mode="one"))
    ledger = make_volume(scene.host, scene.owner, "ledger")
    make_grant(ledger, manager, Role.VIEWER)
    stack_update(actor=manager, stack=stack, repository=ELSEWHERE)
    scene.repository.push(EXTERNAL % ("ledger", "ledger"))
    scene.work()
    assert "ledger" in fresh(stack).message
    assert fresh(stack).status == "failed"
    scene.repository.push((EXTERNAL % ("ledger", "ledger")).replace("/data", "/data:ro"))
    scene.pass_time(301)
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")


def test_what_the_owner_had_deployed_is_repaired_whoever_changed_the_source(
    scene: StackScene, manager: User
) -> None:
    stack = stack_of_admin(scene, manager, BIND)
    assert stack.status == "synced", stack.message
    scene.broken.add("bad")
    scene.repository.push(WEB.format(mode="bad"))
    stack_update(actor=manager, stack=stack, repository=ELSEWHERE)
    scene.work()
    assert fresh(stack).message == "Service web: The new container was not healthy."
    assert [mount.volume.source for mount in scene.service("web").mounts.all()] == ["/srv/shop"]
    assert [row.source_by for row in StackRevision.objects.order_by("number")] == [
        scene.owner,
        manager,
    ]


def test_nobody_vouches_for_the_source_of_a_user_who_is_gone(
    scene: StackScene, manager: User
) -> None:
    stack = stack_of_admin(scene, manager, WEB.format(mode="one"))
    stack_update(actor=manager, stack=stack, repository=ELSEWHERE)
    scene.work()
    type(stack).objects.filter(pk=stack.pk).update(source_by=None)
    scene.repository.push(BIND)
    scene.pass_time(301)
    scene.work()
    assert fresh(stack).status == "failed"
    assert "changed where the files of the stack come from" in fresh(stack).message
