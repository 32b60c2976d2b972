"""Volumes of stacks: each is one stack's, whatever names spell the same."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from hosts.choices import VolumeKind
from hosts.models import Volume
from tests.factories import make_volume
from tests.workspaces.stacks.scene import fresh
from workspaces.models import Workspace
from workspaces.stacks.models import Stack, StackVolume
from workspaces.stacks.services.actions import stack_deploy
from workspaces.stacks.services.stacks import stack_delete
from workspaces.stacks.sync.names import is_derived

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

FILE = "services: {web: {image: 'app:1', volumes: ['%s:/data']}}\nvolumes: {%s: %s}\n"


def stack_with(scene: StackScene, name: str, key: str, spec: str = "{}") -> Stack:
    scene.repository.push(FILE % (key, key, spec))
    stack = scene.create(name=name)
    scene.work()
    return fresh(stack)


@pytest.mark.parametrize("known", [True, False])
def test_names_that_spell_the_same_do_not_make_two_stacks_share_a_volume(
    scene: StackScene, known: bool
) -> None:
    first = stack_with(scene, "shop", "eu-data")
    assert first.status == "synced", first.message
    if not known:
        # Made before it was noted whose a volume is.
        StackVolume.objects.all().delete()
    second = stack_with(scene, "shop-eu", "data")
    assert second.status == "synced", second.message
    one, other = (
        Workspace.objects.get(stack=stack.pk).mounts.get().volume for stack in (first, second)
    )
    assert (one.name, one != other) == ("shop-eu-data", True)
    assert is_derived(other.name, "shop-eu-data")
    scene.repository.push(FILE % ("eu-data", "eu-data", "{}"))
    stack_deploy(actor=scene.owner, stack=first)
    scene.work()
    assert Workspace.objects.get(stack=first.pk).mounts.get().volume == one


def test_a_volume_is_shared_by_whoever_says_so(scene: StackScene) -> None:
    stack_with(scene, "shop", "eu-data")
    second = stack_with(scene, "shop-eu", "data", "{external: true, name: shop-eu-data}")
    assert second.status == "synced", second.message
    assert Volume.objects.count() == 1


def test_a_stack_that_is_made_again_finds_its_volume(scene: StackScene) -> None:
    first = stack_with(scene, "shop", "data")
    before = Volume.objects.get()
    stack_delete(actor=scene.owner, stack=first)
    again = stack_with(scene, "shop", "data")
    assert again.status == "synced", again.message
    assert Volume.objects.get() == before


def test_a_named_volume_is_never_a_folder_of_the_host(scene: StackScene) -> None:
    mark = hashlib.sha256(b"/srv").hexdigest()[:12]
    make_volume(scene.host, scene.owner, f"shop-bind-{mark}", kind=VolumeKind.BIND, source="/srv")
    stack = stack_with(scene, "shop", f"bind-{mark}")
    assert stack.status == "synced", stack.message
    volume = scene.service("web").mounts.get().volume
    assert (volume.kind, volume.source) == (VolumeKind.VOLUME, "")
