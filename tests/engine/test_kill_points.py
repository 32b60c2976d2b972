"""The agent is killed at every call that changes the engine, before and after it.

Each test repeats edits that need one kind of work, kills the agent at the first, second, ... call
of that work, starts it again, and expects the host of the document, nothing twice, nobody else
touched, and silence. Together they meet every kind of step.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from agent.protocol.spec import HealthCheckSpec, MountSpec
from tests.engine.kill_scene import KillScene
from tests.ground.images import BUSYBOX
from tests.ground.size import KILL_MOMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    from tests.ground.faults import Moment
    from tests.ground.proxy import DockerApiProxy

# A hundred deaths and returns take minutes, and more of them beside the other suites.
pytestmark = pytest.mark.timeout(900)
MIB = 1024 * 1024
CREATE = "POST /containers/create"
START = "POST /containers/{id}/start"
STOP = "POST /containers/{id}/stop"
REMOVE = "DELETE /containers/{id}"
RENAME = "POST /containers/{id}/rename"
UPDATE = "POST /containers/{id}/update"
UNPAUSE = "POST /containers/{id}/unpause"
CONNECT = "POST /networks/{id}/connect"
DISCONNECT = "POST /networks/{id}/disconnect"
# Each check is a process that the engine starts: ten a second in two containers take a core.
CHECK = HealthCheckSpec(test=("CMD", "true"), interval=0.4, timeout=5.0, retries=2)


@pytest.fixture
def scene(
    proxy: DockerApiProxy, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[KillScene]:
    made = KillScene(proxy, engine_client, tmp_path)
    try:
        yield made.open()
    finally:
        made.close()


def kill_everywhere(scene: KillScene, *edits: Callable[[], object], expected: set[str]) -> None:
    """Apply the edits in turn, over and over, each with one more kill, until no call is left.

    Every edit has its own count: it is done when it needs fewer calls than the kill asks for.
    """
    for moment in KILL_MOMENTS:
        open_edits = dict.fromkeys(range(len(edits)), True)
        for number in count(1):
            for index, edit in enumerate(edits):
                if open_edits[index]:
                    open_edits[index] = scene.kill_at(number, moment, edit)
                else:
                    edit()
                    scene.settle()
            if not any(open_edits.values()):
                break
    # Independent calls change places from run to run: what no count happened to meet comes now.
    for call, moment in _missing(scene, expected):
        for edit in edits:
            scene.kill_at(1, moment, edit, only=call)
    missing = _missing(scene, expected)
    assert not missing, f"{scene.kills} kills, but never at {missing}"


def _missing(scene: KillScene, expected: set[str]) -> list[tuple[str, Moment]]:
    return [
        (call, moment)
        for call in sorted(expected)
        for moment in KILL_MOMENTS
        if (call, moment) not in scene.reached
    ]


def test_killed_while_a_workspace_with_all_it_needs_is_made_and_taken_away(
    scene: KillScene,
) -> None:
    host = scene.host
    data = MountSpec(target="/data", source="trailer-data", volume_id="v-data")
    number = count(1)

    def make() -> None:
        with host.one_edit():
            host.forget_tombstones()
            host.network("lan")
            host.network("dmz")
            host.volume("data")
            host.build("made", f"FROM {BUSYBOX}\nLABEL made=here\n", number=next(number))
            networks = ("n-lan", "n-dmz")
            host.workspace("web", image="made", network_ids=networks, mounts=(data,))

    def take_away() -> None:
        with host.one_edit():
            host.delete_workspace("web")
            host.delete_network("lan")
            host.delete_network("dmz")
            host.delete_volume("data")
            host.delete_image("made")

    kill_everywhere(
        scene,
        make,
        take_away,
        expected={
            "POST /networks/create",
            "POST /volumes/create",
            "POST /build",
            CREATE,
            CONNECT,
            START,
            STOP,
            REMOVE,
            "DELETE /networks/{id}",
            "DELETE /volumes/{id}",
            "DELETE /images/{id}",
        },
    )


def test_killed_while_a_container_is_replaced(scene: KillScene) -> None:
    host = scene.host
    with host.one_edit():
        host.network("lan")
        host.network("dmz")
        host.workspace("web", network_ids=("n-lan", "n-dmz"), env={"COLOUR": "0"})
    scene.settle()
    number = count(1)
    kill_everywhere(
        scene,
        lambda: host.edit("web", env={"COLOUR": str(next(number))}),
        expected={CREATE, CONNECT, STOP, REMOVE, RENAME, START},
    )


def test_killed_while_a_container_is_replaced_without_downtime(scene: KillScene) -> None:
    host = scene.host
    with host.one_edit():
        host.network("lan")
        host.workspace(
            "web",
            network_ids=("n-lan",),
            env={"COLOUR": "0"},
            health_check=CHECK,
            drain_timeout=0.2,
        )
    scene.settle()
    number = count(1)
    kill_everywhere(
        scene,
        lambda: host.edit("web", env={"COLOUR": str(next(number))}),
        expected={CREATE, START, DISCONNECT, CONNECT, STOP, REMOVE, RENAME},
    )


def test_killed_while_containers_are_changed_in_place(
    scene: KillScene, engine_client: docker.DockerClient
) -> None:
    host = scene.host
    with host.one_edit():
        host.network("lan")
        host.network("dmz")
        host.workspace("web", network_ids=("n-lan",), memory_bytes=64 * MIB)
    scene.settle()

    def there() -> None:
        host.edit("web", name="site", network_ids=("n-lan", "n-dmz"))

    def back() -> None:
        host.edit("web", name="web", network_ids=("n-lan",))

    def squeeze() -> None:
        found = engine_client.containers.get("trailer-web")
        found.update(mem_limit=32 * MIB, memswap_limit=64 * MIB)

    def pause() -> None:
        engine_client.containers.get("trailer-web").pause()

    kill_everywhere(
        scene,
        there,
        back,
        squeeze,
        pause,
        lambda: host.edit("web", desired_state="stopped"),
        lambda: host.edit("web", desired_state="running"),
        expected={RENAME, CONNECT, DISCONNECT, UPDATE, UNPAUSE, STOP, START},
    )
