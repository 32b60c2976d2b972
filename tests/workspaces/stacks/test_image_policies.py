"""Services that follow the registry and services that stay with what they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from images.models import Image
from tests.workspaces.stacks.scene import fresh
from workspaces.stacks.models import StackImage
from workspaces.stacks.services.actions import stack_sync

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from workspaces.stacks.models import Stack

FOLLOWS = "{image: 'app:1', x-trailer: {update_policy: always}}"
STAYS = "{image: 'app:1', x-trailer: {update_policy: if_missing}}"


def deploy(scene: StackScene, stack: Stack | None, **services: str) -> Stack:
    lines = "".join(f"  {name}: {service}\n" for name, service in services.items())
    scene.repository.push(f"services:\n{lines}")
    if stack is None:
        stack = scene.create()
    else:
        stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    return stack


def test_each_policy_of_one_tag_has_an_image_of_its_own(scene: StackScene) -> None:
    deploy(scene, None, web=FOLLOWS, old=STAYS)
    web, old = scene.service("web").image, scene.service("old").image
    assert (web.update_policy, old.update_policy) == ("always", "if_missing")
    assert (web.reference, old.reference) == ("app:1", "app:1")
    Image.objects.filter(pk=web.pk).update(engine_id="sha256:newer")
    assert scene.service("old").image.engine_id == "sha256:app:1"


def test_a_service_that_changes_its_policy_alone_keeps_its_image(scene: StackScene) -> None:
    stack = deploy(scene, None, web=FOLLOWS)
    before = scene.service("web")
    deploy(scene, stack, web=STAYS)
    after = scene.service("web")
    assert (after.image_id, after.image.update_policy) == (before.image_id, "if_missing")
    assert after.revision == before.revision
    assert [row.update_policy for row in StackImage.objects.all()] == ["if_missing"]


def test_a_second_service_with_the_other_policy_changes_nothing_for_the_first(
    scene: StackScene,
) -> None:
    stack = deploy(scene, None, old=STAYS)
    before = scene.service("old")
    deploy(scene, stack, old=STAYS, web=FOLLOWS)
    after = scene.service("old")
    assert (after.image_id, after.revision) == (before.image_id, before.revision)
    assert scene.service("web").image_id != after.image_id
