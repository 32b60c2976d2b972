"""A stack gets nothing that its owner may not use any more, by no sync and by no healing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host
from tests.factories import api_client, make_grant, make_network, make_user, make_volume
from tests.workspaces.stacks.scene import fresh
from trailer.access.models import Role
from workspaces.control.compile import host_state
from workspaces.stacks.services.actions import stack_deploy, stack_rollback, stack_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workspaces.stacks.scene import StackScene

VOLUME = """\
services: {web: {image: 'app:1', volumes: ['ledger:/data'], environment: {MODE: %s}}}
volumes: {ledger: {external: true}}
"""
NETWORK = """\
services: {web: {image: 'app:1', networks: [inner], environment: {MODE: %s}}}
networks: {inner: {external: true}}
"""


def told(scene: StackScene) -> tuple[str, str]:
    [row] = host_state(Host.objects.get(pk=scene.host.pk)).workspaces
    return row.desired_state, row.blocked


@pytest.mark.parametrize(("kind", "text"), [("volume", VOLUME), ("network", NETWORK)])
def test_what_a_stack_mounts_from_others_goes_with_the_grant(
    scene: StackScene, kind: str, text: str
) -> None:
    other = make_user("olga")
    make: Callable[..., Any] = make_volume if kind == "volume" else make_network
    thing = make(scene.host, other, "ledger" if kind == "volume" else "inner")
    grant = make_grant(thing, scene.owner, Role.EDITOR)
    scene.repository.push(text % "one")
    stack = scene.create()
    scene.work()
    scene.repository.push(text % "two")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.status, told(scene)) == ("synced", ("running", ""))
    revision = scene.service("web").revision
    answer = api_client(other).put(f"/api/v1/{kind}s/{thing.pk}/grants/", [])
    assert [one["name"] for one in answer.json()[0]["still_uses"]] == ["shop-web"]
    assert not type(grant).objects.exists()
    assert told(scene)[0] == "running"
    assert "may not use" in told(scene)[1]
    for n, act in enumerate(("sync", "deploy", "rollback")):
        scene.repository.push(text % f"more-{n}")
        if act == "rollback":
            stack_rollback(actor=scene.owner, stack=fresh(stack), revision=1)
        else:
            service = stack_sync if act == "sync" else stack_deploy
            service(actor=scene.owner, stack=fresh(stack))
        scene.work()
        scene.pass_time(60)
        scene.work()
        assert fresh(stack).status == "failed", act
        assert "may use" in fresh(stack).message
    row = scene.service("web")
    assert (row.revision, row.desired_state) == (revision, "running")
    make_grant(thing, scene.owner, Role.EDITOR)
    assert told(scene) == ("running", "")


def test_a_service_that_was_evicted_is_not_started_by_the_next_sync(scene: StackScene) -> None:
    other = make_user("olga")
    volume = make_volume(scene.host, other, "ledger")
    make_grant(volume, scene.owner, Role.EDITOR)
    scene.repository.push(VOLUME % "one")
    stack = scene.create()
    scene.work()
    web = scene.service("web")
    url = f"/api/v1/volumes/{volume.pk}/evict/"
    assert api_client(other).post(url, {"workspace": str(web.pk)}).status_code == 202
    scene.repository.push(VOLUME % "two")
    stack_sync(actor=scene.owner, stack=fresh(stack))
    scene.work()
    assert fresh(stack).status == "failed"
    assert "ended by whoever manages" in fresh(stack).message
    assert scene.service("web").desired_state == "stopped"
