"""A stack that is handed over: with all that is its own, and with nothing that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Network, Volume
from images.models import Image
from tests.factories import (
    make_admin,
    make_grant,
    make_network,
    make_registry,
    make_user,
    make_volume,
)
from tests.workspaces.stacks.scene import WEB, fresh, last_sync
from trailer import policy
from trailer.access.models import Capability, Grant, HostCapability, Quota, Role
from trailer.audit.models import AuditEntry
from trailer.errors import Conflict, Invalid
from workspaces.models import Event, Workspace
from workspaces.services import workspace_transfer
from workspaces.stacks.git.settings import OWN_MACHINE, git_limits
from workspaces.stacks.services.actions import stack_deploy
from workspaces.stacks.services.stacks import stack_delete, stack_update
from workspaces.stacks.services.transfer import stack_transfer
from workspaces.stacks.sync import prepare
from workspaces.stacks.sync.engine import work_once

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from trailer.accounts.models import User
    from workspaces.stacks.models import Stack

WHOLE = """\
x-trailer: {needs: {valkey: {}}}
services:
  web: {image: 'app:1', volumes: ['files:/data']}
  job: {image: 'job:1'}
volumes: {files: {}}
"""
BIND = "services: {web: {image: 'app:1', volumes: ['/srv/shop:/data']}}\n"
EXTERNAL = """\
services: {web: {image: 'app:1', volumes: ['ledger:/data'], networks: [inner]}}
volumes: {ledger: {external: true}}
networks: {inner: {external: true}}
"""
PRIVATE = "services: {web: {image: 'registry.example.com/app:%s'}}\n"


@pytest.fixture
def heir(scene: StackScene) -> User:
    return make_user("heir")


def deployed(scene: StackScene, text: str) -> Stack:
    scene.repository.push(text)
    stack = scene.create()
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")
    return fresh(stack)


def owners() -> set[str]:
    models: tuple[Any, ...] = (Workspace, Image, Network, Volume)
    return {row.owner.username for model in models for row in model.objects.all()}


def deploy_again(scene: StackScene, stack: Stack, text: str) -> Stack:
    scene.repository.push(text)
    stack_deploy(actor=fresh(stack).owner, stack=fresh(stack))
    scene.work()
    return fresh(stack)


def test_everything_that_is_the_stacks_goes_along(scene: StackScene, heir: User) -> None:
    stack = deployed(scene, WHOLE)
    revisions = dict(Workspace.objects.values_list("service", "revision"))
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert fresh(stack).owner == heir
    assert owners() == {"heir"}
    counts = (Workspace, Image, Network, Volume)
    assert [model.objects.count() for model in counts] == [3, 3, 1, 2]
    # Nothing restarts for that.
    assert dict(Workspace.objects.values_list("service", "revision")) == revisions
    assert Event.objects.filter(kind="transferred").count() == 3
    told = AuditEntry.objects.filter(action__endswith=".transfer").values_list("kind", flat=True)
    kinds = ["image"] * 3 + ["network", "stack"] + ["volume"] * 2 + ["workspace"] * 3
    assert sorted(told) == kinds


def test_the_former_owner_reaches_the_parts_through_the_stack_alone(
    scene: StackScene, heir: User
) -> None:
    stack = deployed(scene, WHOLE)
    make_grant(scene.service("web"), heir, Role.VIEWER)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    [grant] = Grant.objects.all()
    assert (grant.kind, grant.user, grant.role) == ("stack", scene.owner, Role.MANAGER)
    web = scene.service("web")
    assert policy.allows(scene.owner, "workspace.exec", web)
    grant.delete()
    for row in (fresh(stack), web, *Image.objects.all(), *Volume.objects.all()):
        assert not policy.allows(scene.owner, f"{row._meta.model_name}.view", row)


def test_it_deploys_goes_on_and_is_deleted_in_the_new_owners_name(
    scene: StackScene, heir: User
) -> None:
    stack = deployed(scene, WHOLE)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    again = deploy_again(scene, stack, WHOLE + "# again\n" + "networks: {back: {}}\n")
    assert (again.status, again.message) == ("synced", "")
    more = WHOLE.replace("'job:1'", "'job:2', volumes: ['more:/m']").replace(
        "{}}\n", "{}, more: {}}\n"
    )
    again = deploy_again(scene, stack, more)
    assert (again.status, again.message) == ("synced", "")
    assert owners() == {"heir"}
    stack_delete(actor=heir, stack=again)
    assert not Workspace.objects.exists()
    assert not Network.objects.exists()


def test_a_sync_under_way_goes_on_in_the_new_owners_name(scene: StackScene, heir: User) -> None:
    scene.slow.add("web")
    scene.repository.push(WHOLE + "  # first\n")
    stack = scene.create()
    scene.work(rounds=6)
    assert last_sync(stack).phase not in ("queued", "done")
    stack_transfer(actor=scene.owner, stack=fresh(stack), owner="heir")
    scene.slow.clear()
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")
    assert owners() == {"heir"}


def test_a_step_that_had_begun_writes_for_who_owns_the_stack_then(
    scene: StackScene, heir: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handed over between the step's first look and its lock."""
    stack = scene.create()

    def is_fresh(*_: Any) -> bool:
        if fresh(stack).owner != heir:
            stack_transfer(actor=scene.owner, stack=fresh(stack), owner="heir")
        return True

    monkeypatch.setattr(prepare, "is_fresh", is_fresh)
    work_once()
    assert owners() == {"heir"}


def test_who_may_not_mount_folders_gets_no_stack_that_does(scene: StackScene, heir: User) -> None:
    scene.owner = make_admin("boss")
    stack = deployed(scene, BIND)
    with pytest.raises(Invalid, match="heir may not mount folders of host local"):
        stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert owners() == {"boss"}
    assert fresh(stack).owner == scene.owner
    HostCapability.objects.create(user=heir, host_id=scene.host.pk, capability=Capability.BIND)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    again = deploy_again(scene, stack, BIND + "# again\n")
    assert (again.status, again.message) == ("synced", "")
    assert owners() == {"heir"}


def test_what_the_new_owner_may_not_use_is_named(scene: StackScene, heir: User) -> None:
    ledger = make_volume(scene.host, scene.owner, "ledger")
    inner = make_network(scene.host, scene.owner, "inner")
    stack = deployed(scene, EXTERNAL)

    def refusal() -> str:
        with pytest.raises(Invalid) as caught:
            stack_transfer(actor=scene.owner, stack=stack, owner="heir")
        return caught.value.fields["owner"][0]

    assert "web mounts the volume ledger, which heir may not write to" in refusal()
    grant = make_grant(ledger, heir, Role.VIEWER)
    assert "web mounts the volume ledger" in refusal()
    Grant.objects.filter(pk=grant.pk).update(role=Role.EDITOR)
    assert "web is on the network inner, which heir may not use" in refusal()
    make_grant(inner, heir, Role.VIEWER)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    # What is not the stack's stays whose it was.
    ledger.refresh_from_db()
    inner.refresh_from_db()
    assert {ledger.owner, inner.owner} == {scene.owner}


def test_a_quota_has_room_for_all_services_or_for_none(scene: StackScene, heir: User) -> None:
    stack = deployed(scene, WHOLE)
    quota = Quota.objects.create(user=heir, workspaces=2)
    with pytest.raises(Invalid) as caught:
        stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert caught.value.code == "quota_exceeded"
    Quota.objects.filter(pk=quota.pk).update(workspaces=3, disk_bytes=100)
    Image.objects.update(size_bytes=40)
    with pytest.raises(Invalid):
        stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert owners() == {"owner"}
    assert not AuditEntry.objects.filter(action__endswith=".transfer").exists()
    Quota.objects.filter(pk=quota.pk).update(disk_bytes=120)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert owners() == {"heir"}


def test_the_former_owners_registry_credential_fetches_nothing_more(
    scene: StackScene, heir: User
) -> None:
    make_registry(scene.owner)
    stack = deployed(scene, PRIVATE % 1)
    assert Image.objects.get().registry is not None
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    assert Image.objects.get().registry is None
    deploy_again(scene, stack, PRIVATE % 2)
    assert not Image.objects.filter(registry__isnull=False).exists()


def test_the_new_owners_credential_serves_only_a_source_that_they_chose(
    scene: StackScene, heir: User
) -> None:
    """Else a stack could be handed to somebody for what only they may fetch."""
    stack = deployed(scene, PRIVATE % 1)
    theirs = make_registry(heir)
    stack_transfer(actor=scene.owner, stack=stack, owner="heir")
    again = deploy_again(scene, stack, PRIVATE % 2)
    assert not Image.objects.filter(registry__isnull=False).exists()
    assert set(Image.objects.values_list("source_by", flat=True)) == {scene.owner.pk}
    # The place is the same, but the new owner has said so.
    stack_update(actor=heir, stack=again, credential={"token": "t"})
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")
    assert scene.service("web").image.registry == theirs


def test_a_managers_repository_is_not_fetched_with_the_owners_credential(
    scene: StackScene,
) -> None:
    manager = make_user("manager")
    make_registry(scene.owner)
    stack = deployed(scene, WEB.format(mode="one"))
    make_grant(stack, manager, Role.MANAGER)
    stack_update(actor=manager, stack=stack, branch="other")
    scene.repository.push(PRIVATE % 1)
    scene.work()
    image = scene.service("web").image
    assert (image.registry, image.source_by) == (None, manager)


def test_an_administrators_own_machine_is_read_for_nobody_elses_source(
    scene: StackScene, settings: Any
) -> None:
    settings.TRAILER_GIT_ALLOW, settings.REDIS_URL = None, ""
    admin = make_admin()
    assert git_limits(admin, admin).allow == OWN_MACHINE
    assert git_limits(admin, scene.owner).allow == ()
    assert git_limits(admin, None).allow == ()


def test_a_service_is_not_handed_over_by_itself(scene: StackScene, heir: User) -> None:
    deployed(scene, WEB.format(mode="one"))
    with pytest.raises(Conflict, match="Hand over the stack"):
        workspace_transfer(actor=scene.owner, workspace=scene.service("web"), owner="heir")
