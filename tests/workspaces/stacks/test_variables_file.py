"""trailer.vars.yml, plain and encrypted with age, from the repository into a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.workspaces.stacks.scene import SECRET, fresh, last_sync
from trailer.sealed import unseal
from workspaces.models import Event, Revision
from workspaces.stacks.file.identity import encrypt_value
from workspaces.stacks.services.actions import stack_sync
from workspaces.stacks.services.stacks import stack_update

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from workspaces.stacks.models import Stack

FILE = """\
services:
  web:
    image: app:${config.TAG}
    environment: {LEVEL: "${config.LEVEL}", KEY: "pre-${secret.KEY}"}
"""


def values(**given: object) -> str:
    return json.dumps({"values": given})


def pushed(scene: StackScene, stack: Stack, **given: object) -> Stack:
    scene.repository.push(FILE, variables_text=values(**given))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    return fresh(stack)


def environment(scene: StackScene) -> dict[str, str]:
    rows = scene.service("web").env_vars.all()
    return {row.name: unseal(row, "secret_token") if row.is_secret else row.value for row in rows}


def test_plain_and_encrypted_values_reach_the_service(scene: StackScene) -> None:
    stack = scene.create()
    scene.work()
    secure = {"secure": encrypt_value(SECRET, stack.recipient)}
    stack = pushed(scene, stack, TAG="2", LEVEL="debug", KEY=secure)
    assert (stack.status, stack.message) == ("synced", "")
    assert scene.service("web").image.reference == "app:2"
    assert environment(scene) == {"LEVEL": "debug", "KEY": f"pre-{SECRET}"}
    secret = {row.name: row.is_secret for row in scene.service("web").env_vars.all()}
    assert secret == {"LEVEL": False, "KEY": True}
    told = [last_sync(stack).log, *Event.objects.values_list("changes", flat=True)]
    assert SECRET not in str([*told, *Revision.objects.values_list("fields", flat=True)])
    # The stack's own variables go first; a change of the file alone is a change.
    stack_update(actor=scene.owner, stack=stack, variables={"LEVEL": "info"})
    scene.work()
    assert environment(scene)["LEVEL"] == "info"
    pushed(scene, stack, TAG="2", LEVEL="debug", KEY={"secure": secure["secure"]}, MORE="x")
    assert environment(scene) == {"LEVEL": "info", "KEY": f"pre-{SECRET}"}


def test_a_value_encrypted_for_another_stack_touches_nothing(scene: StackScene) -> None:
    stack, other = scene.create(), scene.create(name="other")
    scene.work()
    before = {row.pk: row.revision for row in scene.host.workspaces.all()}
    secure = {"secure": encrypt_value(SECRET, other.recipient)}
    stack = pushed(scene, stack, TAG="2", LEVEL="debug", KEY=secure)
    assert stack.status == "failed"
    assert "KEY" in stack.message
    assert SECRET not in stack.message
    assert {row.pk: row.revision for row in scene.host.workspaces.all()} == before
