"""Images of earlier revisions: kept while something goes back to them, then removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts.models import Tombstone
from images import selectors
from images.models import Image
from images.services.images import image_create
from tests.workspaces.stacks.scene import fresh, last_sync
from workspaces.models import Revision
from workspaces.stacks.services.actions import stack_deploy, stack_rollback, stack_sync
from workspaces.stacks.sync import leftovers

if TYPE_CHECKING:
    import pytest

    from tests.workspaces.stacks.scene import StackScene
    from workspaces.stacks.models import Stack


def at(scene: StackScene, stack: Stack, tag: object) -> None:
    scene.repository.push(f"services: {{web: {{image: 'app:{tag}'}}}}")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()


def held() -> set[str]:
    return set(Image.objects.values_list("reference", flat=True))


def buried() -> set[str]:
    rows = Tombstone.objects.filter(kind="image").values_list("name", flat=True)
    return {name.rpartition("/")[2] for name in rows}


def test_an_image_that_no_revision_goes_back_to_is_removed_by_tombstone(
    scene: StackScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (selectors, leftovers):
        monkeypatch.setattr(place, "KEPT_REVISIONS", 2)
    stack = scene.create()
    # The first one runs again after the second: that keeps it.
    for tag in (1, 2, 1):
        at(scene, stack, tag)
    assert (held(), buried()) == ({"app:1", "app:2"}, set())
    at(scene, stack, 3)
    assert fresh(stack).status == "synced"
    assert held() == {"app:1", "app:3"}
    assert buried() == {"app:2"}
    assert "Image app:2: removed, no revision goes back to it." in last_sync(stack).log
    stack_rollback(actor=scene.owner, stack=stack, revision=3)
    scene.work()
    assert scene.service("web").image.reference == "app:1"
    assert fresh(stack).pinned


def test_an_image_of_a_commit_that_never_ran_goes_with_the_next_deploy(scene: StackScene) -> None:
    stack = scene.create()
    at(scene, stack, 1)
    scene.missing.add("app:typo")
    at(scene, stack, "typo")
    assert fresh(stack).status == "failed"
    assert "app:typo" in held()
    at(scene, stack, 2)
    assert held() == {"app:1", "app:2"}


def test_an_image_that_somebody_else_needs_stays(scene: StackScene) -> None:
    stack = scene.create()
    at(scene, stack, 1)
    scene.missing.add("app:typo")
    at(scene, stack, "typo")
    wanted = Image.objects.get(reference="app:typo")
    revision = Revision.objects.filter(workspace=scene.service("web")).latest("revision")
    Revision.objects.filter(pk=revision.pk).update(
        fields=revision.fields | {"image": str(wanted.pk)}
    )
    other = image_create(
        actor=scene.owner, host=scene.host, name="mine", reference="app:1", registry=None
    )
    stack_deploy(actor=scene.owner, stack=stack)
    at(scene, stack, 2)
    assert {"app:typo", "app:1", "app:2"} <= held()
    assert Image.objects.filter(pk=other.pk).exists()
