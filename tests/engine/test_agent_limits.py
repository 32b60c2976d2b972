"""Limits of builds on a real engine: time, silence, endless output, disk; nothing stays behind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from agent.protocol.state import DesiredBuild
from tests.agent.documents import image
from tests.engine.agent_scene import Launch, busybox, running, sleeper
from tests.ground.images import BUSYBOX
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    import docker

    from agent.protocol.report import BuildStatus
    from tests.agent.fake_server import FakeServer

REF = "trailer/i-app:latest"
SECONDS_OF_YES = 15.0


def build(command: str, *, cancel: bool = False) -> object:
    return image(
        "app",
        kind="build",
        ref=REF,
        dockerfile=f"FROM {BUSYBOX}\nRUN {command}",
        build=DesiredBuild(id="b-app", number=1, cancel=cancel),
    )


def limit(server: FakeServer, **fields: float) -> None:
    server.settings = msgspec.structs.replace(server.settings, **fields)


def ended(server: FakeServer, timeout: float = 30) -> BuildStatus:
    def over() -> BuildStatus | None:
        known = server.build("b-app")
        return known if known and known.status in {"finished", "failed", "cancelled"} else None

    result = eventually(over, timeout, f"no end: {server.build('b-app')}")
    assert result is not None
    return result


def images(client: docker.DockerClient) -> set[str]:
    """Tagged or not."""
    return {str(found["Id"]) for found in client.api.images(all=True)}


def nothing_left(client: docker.DockerClient, before: set[str]) -> None:
    """No container of the build, and no image that was not there before."""
    eventually(lambda: client.api.containers(all=True) == [], 5, "a container of the build stays")
    assert images(client) == before


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"build_timeout": 3.0}, "Stopped after 3 seconds, the host's limit."),
        ({"build_idle_timeout": 3.0}, "Stopped because it printed nothing for 3 seconds."),
    ],
    ids=["too long", "too silent"],
)
def test_a_build_without_end_is_stopped_and_leaves_nothing(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    limits: dict[str, float],
    sentence: str,
) -> None:
    before = images(engine_client)
    limit(server, **limits)
    server.desire(images=(build("echo begun; sleep 1000"),))
    launch()
    eventually(lambda: b"begun" in server.book.logs.get("b-app", b""), 20)
    result = ended(server)
    assert (result.status, result.message) == ("failed", sentence)
    nothing_left(engine_client, before)


def test_a_cancel_takes_less_than_five_seconds_and_leaves_nothing(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    before = images(engine_client)
    server.desire(images=(build("echo begun; sleep 1000"),))
    launch()
    eventually(lambda: b"begun" in server.book.logs.get("b-app", b""), 20)
    asked = time.monotonic()
    server.desire(images=(build("echo begun; sleep 1000", cancel=True),))
    assert ended(server).status == "cancelled"
    nothing_left(engine_client, before)
    assert time.monotonic() - asked < 5


def test_endless_output_does_not_grow_the_agent(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    """Scaled down from five minutes: growth would show at once, it comes with every line."""
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    agent = launch()
    running(server)
    process = psutil.Process(agent.pid)
    server.desire(images=(busybox(), build("yes")), workspaces=(sleeper(),))
    eventually(lambda: len(server.book.logs.get("b-app", b"")) > 100_000, 20)
    before, peak = process.memory_info().rss, 0
    until = time.monotonic() + SECONDS_OF_YES
    while time.monotonic() < until:
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.2)
    sent = len(server.book.logs["b-app"])
    grown = peak - before
    print(f"yes for {SECONDS_OF_YES:g} s: agent grew {grown / 2**20:.1f} MiB, sent {sent} bytes")
    assert grown < 64 * 2**20
    # At most a batch of 256 KiB in a quarter of a second.
    assert sent < 1.2 * 2**20 * (SECONDS_OF_YES + 5)
    # How soon, beside a flood, is a matter of free cores: tests/bench measures it.
    server.desire(images=(busybox(), build("yes", cancel=True)), workspaces=(sleeper(),))
    assert ended(server).status == "cancelled"
    eventually(lambda: len(engine_client.api.containers(all=True)) == 1, 5)


def test_a_line_of_ten_megabytes_arrives_cut(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    command = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo after"
    server.desire(images=(build(command),))
    launch()
    assert ended(server, 60).status == "finished"
    lines = server.book.logs["b-app"].decode().splitlines()
    (long,) = [line for line in lines if line.startswith("xxx")]
    assert long.endswith("characters cut")
    assert len(long) < 17_000
    assert "after" in lines
    engine_client.api.remove_image(REF)


def test_a_disk_without_room_makes_builds_wait_and_lets_containers_stop(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    limit(server, disk_free_min_bytes=1 << 60)
    stopped = sleeper(desired_state="stopped", revision=2)
    server.desire(images=(busybox(), build("echo made")), workspaces=(stopped,))
    eventually(lambda: (b := server.build("b-app")) and "Waiting for disk space" in b.message, 10)
    eventually(lambda: server.status_word("w-web") == "stopped", 10)
    eventually(lambda: "Waiting for disk space" in server.book.heartbeats[-1].message, 10)
    always(lambda: engine_client.api.images(REF) == [], 1, "built without room")
    limit(server, disk_free_min_bytes=1)
    assert ended(server).status == "finished"
    engine_client.api.remove_image(REF)
