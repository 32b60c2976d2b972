"""Two stacks on one network of the host: who goes by which name is said in the sync's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts.services.networks import network_create
from tests.workspaces.stacks.scene import fresh, last_sync

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

ON_IT = """\
services:
  web: {image: 'app:1', networks: [default, proxy]}
  job: {image: 'app:1'}
networks: {proxy: {external: true}}
"""


def test_a_name_that_another_stack_has_on_a_shared_network_is_warned_of(
    scene: StackScene,
) -> None:
    network_create(actor=scene.owner, host=scene.host, name="proxy")
    scene.repository.push(ON_IT)
    first = scene.create(name="shop")
    scene.work()
    second = scene.create(name="blog")
    scene.work()
    assert (fresh(first).status, fresh(second).status) == ("synced", "synced")
    logs = [last_sync(stack).log.count("another stack") for stack in (first, second)]
    # Whoever comes second is told; `job`, on the stack's own network, is nobody else's name.
    assert logs == [0, 1]
    told = last_sync(second).log
    assert "Service web: another stack has a service of this name on the network proxy." in told
    assert "trailer-blog-web there" in told
