"""The overseer, and the engine with it, killed at every call that changes something there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.overseer_scene import OverseerScene
from tests.ground.faults import Moment
from tests.ground.size import OVERSEER_BEFORE

if TYPE_CHECKING:
    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy

CREATE = "POST /containers/create"
START = "POST /containers/{id}/start"
CONNECT = "POST /networks/{id}/connect"
STOP = "POST /containers/{id}/stop"
RENAME = "POST /containers/{id}/rename"
REMOVE = "DELETE /containers/{id}"
# Without the questions about health.
SWAP = [
    *(CREATE, START, REMOVE),
    *(STOP, RENAME, CREATE, CONNECT, START, REMOVE),
]


@pytest.fixture
def scene(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> OverseerScene:
    made = OverseerScene(clean_engine, engine_client, proxy)
    made.open()
    return made


def test_a_replacement_keeps_networks_names_and_ports(scene: OverseerScene) -> None:
    assert scene.parts["networks"] == {"front": ["agent"], "back": ["helper"]}
    assert scene.parts["ports"] == {"6020/tcp": [{"HostIp": "127.0.0.1", "HostPort": "16020"}]}
    old = scene.client.containers.get("trailer-agent").id
    assert scene.replace() != old
    changes = [str(call) for call in scene.proxy.mutating_calls if "exec" not in call.path]
    assert changes == SWAP


def boundaries(calls: list[str]) -> list[tuple[str, int]]:
    """Each call of the swap as the n-th of its kind."""
    return [
        (call, SWAP[: place + 1].count(call)) for place, call in enumerate(SWAP) if call in calls
    ]


def test_an_overseer_killed_at_any_call_leaves_one_working_agent(scene: OverseerScene) -> None:
    every = boundaries(SWAP)
    for call, number in every[:OVERSEER_BEFORE]:
        scene.kill_at(call, number, Moment.BEFORE_FORWARD)
    for call, number in every:
        scene.kill_at(call, number, Moment.AFTER_EXECUTE)


def test_an_engine_killed_between_two_agents_leaves_one_working_agent(
    scene: OverseerScene,
) -> None:
    """Where no agent runs: elsewhere the engine's end is that of the overseer."""
    for call, number in boundaries([STOP, RENAME, CREATE, START])[2:]:
        scene.kill_at(call, number, Moment.AFTER_EXECUTE, daemon_too=True)
