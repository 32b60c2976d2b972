"""Which services other settings of a stack may take files from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.factories import api_client
from tests.workspaces.stacks.scene import fresh
from workspaces.models import Workspace

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from workspaces.stacks.models import Stack


def deployed(scene: StackScene) -> Stack:
    stack = scene.create()
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    Workspace.objects.filter(stack=stack.pk).update(container_id="c" * 64)
    return stack


def losses(scene: StackScene, stack: Stack, act: str) -> list[tuple[str, str, bool]]:
    answer = api_client(scene.owner).post(f"/api/v1/stacks/{stack.pk}/{act}/plan/")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["workspaces"]
    return [(row["service"], row["why"], row["loses_files"]) for row in found]


def test_other_settings_may_change_every_service_that_has_a_container(scene: StackScene) -> None:
    stack = deployed(scene)
    assert losses(scene, stack, "settings") == [("web", "may_change", True)]
    Workspace.objects.filter(stack=stack.pk).update(container_id="")
    assert losses(scene, stack, "settings") == []
