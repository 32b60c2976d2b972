"""The agent's verdict on its engine: made of pings, told at once, withdrawn by one answer."""

import msgspec

from agent.loop.engine_watch import DEADLINE, MISSES, PERIOD, EngineWatch
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import eventually


class Scene:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.turns: list[bool] = []
        self.watch = EngineWatch(self.runtime, on_turn=self.turns.append)


def test_one_missed_ping_is_no_silence_and_two_are() -> None:
    scene = Scene()
    scene.watch.look()
    scene.runtime.away = True
    scene.watch.look()
    assert (scene.watch.verdict.since, scene.turns) == ("", [])
    scene.watch.look()
    assert scene.watch.verdict.since
    assert "cannot be reached" in scene.watch.verdict.message
    assert scene.turns == [False]


def test_a_silence_keeps_its_start_and_is_told_once() -> None:
    scene = Scene()
    scene.watch.look()
    scene.runtime.away = True
    scene.watch.look()
    scene.watch.look()
    since = scene.watch.verdict.since
    scene.watch.look()
    assert scene.watch.verdict.since == since
    assert scene.turns == [False]


def test_one_answer_ends_the_silence() -> None:
    scene = Scene()
    scene.runtime.away = True
    scene.watch.look()
    scene.runtime.away = False
    scene.watch.look()
    assert (scene.watch.verdict.since, scene.watch.verdict.message) == ("", "")
    assert scene.turns == [False, True]


def test_an_agent_that_starts_beside_a_dead_engine_knows_it_by_the_first_ping() -> None:
    scene = Scene()
    assert scene.watch.verdict.since is None
    scene.runtime.away = True
    scene.watch.look()
    assert scene.watch.verdict.since


def test_the_verdict_comes_in_time() -> None:
    assert PERIOD + MISSES * DEADLINE < 5
    scene = Scene()
    assert 0 < PERIOD - scene.watch.look() < 0.5
    scene.runtime.away = True
    assert 0 < DEADLINE - scene.watch.look() < 0.5


def test_the_server_learns_of_a_silence_and_its_end_without_waiting_for_a_heartbeat(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.settings = msgspec.structs.replace(fake_server.settings, heartbeat_interval=3600.0)
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")

    def told() -> str | None:
        since: str | None = fake_server.book.heartbeats[-1].engine_silent_since
        return since

    eventually(lambda: told() == "", 5)
    runtime.away = True
    eventually(lambda: bool(told()), 5, "the server was not told of the silence")
    assert "cannot be reached" in fake_server.book.heartbeats[-1].message
    runtime.away = False
    eventually(lambda: told() == "", 5, "the server was not told that the engine is back")


def test_the_engine_that_answers_again_is_looked_at_whole(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    eventually(lambda: fake_server.book.heartbeats[-1].engine_silent_since == "", 5)
    runtime.away = True
    eventually(lambda: fake_server.book.heartbeats[-1].engine_silent_since, 5)
    (container_id,) = runtime.containers
    del runtime.containers[container_id]
    runtime.away = False
    eventually(lambda: len(runtime.containers) == 1, 5, "nobody looked at the engine")
