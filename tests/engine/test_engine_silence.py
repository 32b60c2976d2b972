"""A real engine that is killed or frozen: the agent's verdict in time, and none without reason."""

import time
from collections.abc import Callable
from contextlib import closing

import docker

from agent.protocol.state import HostSettings
from tests.agent.fake_server import FakeServer
from tests.engine.agent_scene import START, Launch, busybox, running, sleeper, state_of
from tests.ground.engine import PrivateEngine
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import always, eventually

# The status of what runs there may be wrong for this long.
IN_TIME = 5.0
# Takes as long to stop as it is given.
STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")


def silent_since(server: FakeServer) -> str | None:
    """Of the newest heartbeat; None before the first."""
    heard = server.book.heartbeats
    return heard[-1].engine_silent_since if heard else None


def rarely_heard(server: FakeServer) -> None:
    """So that only an extra heartbeat can bring the verdict in time."""
    server.settings = HostSettings(reconcile_interval=1.0, heartbeat_interval=600.0)


def test_a_killed_engine_is_silent_within_five_seconds_and_back_with_its_first_answer(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    rarely_heard(server)
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(engine.url, "other")
    running(server)
    eventually(lambda: silent_since(server) == "", START)
    engine.kill9()
    eventually(lambda: silent_since(server), IN_TIME, "the silence was not told in time")
    assert "cannot be reached" in server.book.heartbeats[-1].message
    assert server.status_word("w-web") == "running"
    engine.start()
    eventually(lambda: silent_since(server) == "", IN_TIME, "the engine's return was not told")
    with closing(engine.client()) as client:
        eventually(lambda: state_of(client)[1] == "running", START)


def test_a_frozen_engine_is_silent_within_five_seconds_and_back_with_its_first_answer(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    rarely_heard(server)
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(engine.url, "other")
    running(server)
    eventually(lambda: silent_since(server) == "", START)
    engine.freeze()
    eventually(lambda: silent_since(server), IN_TIME, "the silence was not told in time")
    assert "did not answer in time" in server.book.heartbeats[-1].message
    engine.thaw()
    eventually(lambda: silent_since(server) == "", IN_TIME, "the engine's return was not told")


def test_heartbeats_go_on_while_the_engine_is_frozen_and_keep_the_silences_start(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(engine.url, "other")
    running(server)
    engine.freeze()
    since = eventually(lambda: silent_since(server), IN_TIME)
    heard = len(server.book.heartbeats)
    eventually(lambda: len(server.book.heartbeats) >= heard + 5, 10)
    assert {beat.engine_silent_since for beat in server.book.heartbeats[heard:]} == {since}
    engine.thaw()


def test_an_agent_that_starts_beside_a_frozen_engine_says_so_in_its_first_heartbeat(
    server: FakeServer, launch: Launch, engine_factory: Callable[..., PrivateEngine]
) -> None:
    engine = engine_factory()
    engine.freeze()
    launch(engine.url, "other")
    first = eventually(lambda: server.book.heartbeats[:1], START)[0]
    assert first.engine_silent_since
    engine.thaw()
    eventually(lambda: silent_since(server) == "", START)


def test_a_workspace_that_takes_ten_seconds_to_stop_is_no_silence(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> None:
    stubborn = sleeper(command=STUBBORN, drain_timeout=10)
    server.desire(images=(busybox(),), workspaces=(stubborn,))
    launch(proxy.url)
    running(server)
    eventually(lambda: silent_since(server) == "", START)
    heard, begun = len(server.book.heartbeats), time.monotonic()
    server.desire(
        images=(busybox(),),
        workspaces=(
            sleeper(command=STUBBORN, drain_timeout=10, desired_state="stopped", revision=2),
        ),
    )
    eventually(lambda: server.status_word("w-web") == "stopped", 30)
    assert time.monotonic() - begun > 9
    said = {(b.engine_silent_since, b.message) for b in server.book.heartbeats[heard:]}
    assert said == {("", "")}


def test_a_single_late_ping_is_no_silence(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> None:
    launch(proxy.url)
    eventually(lambda: silent_since(server) == "", START)
    proxy.delay("GET", "/_ping", seconds=1.6, times=1)
    always(lambda: silent_since(server) == "", 5, "one late ping was told as silence")


def test_pings_that_hang_are_silence_although_other_calls_are_answered(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> None:
    launch(proxy.url)
    eventually(lambda: silent_since(server) == "", START)
    proxy.hang("GET", "/_ping", times=None)
    eventually(lambda: silent_since(server), IN_TIME)
    proxy.reset()
    eventually(lambda: silent_since(server) == "", IN_TIME)
