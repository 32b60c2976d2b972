"""Agent and engine killed in the middle of a snapshot: no or one image, a container that runs, and
never a success without an image."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent.protocol import naming
from agent.protocol.state import DesiredBuild
from tests.engine.agent_forks import AgentForks
from tests.engine.agent_scene import state_of
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import images_with, snapshot
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from agent.protocol.report import BuildStatus
    from tests.engine.agent_forks import ForkedAgent
    from tests.ground.engine import PrivateEngine
    from tests.ground.fixtures_engine import EngineFactory

REF = naming.build_ref("i-snap")
MEGABYTES = 100
SECRET = "hunter2-secret"
# Seconds after the container was paused; a commit of that size takes about one.
MOMENTS = [0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0]


class Killing:
    """One workspace with much to commit; each round is one snapshot."""

    def __init__(self, engine: PrivateEngine, client: docker.DockerClient, folder: Path) -> None:
        self.engine = engine
        self.client = client
        self.host = DesiredHost()
        self._forks = AgentForks()
        self._folder = folder
        self._numbers = itertools.count(1)
        self.agent = self.start()
        # With a secret a snapshot takes two steps, and may die between them.
        self.host.workspace("web", secret_env={"TOKEN": SECRET})
        self._up("web never runs")
        command = f"dd if=/dev/urandom of=/big bs=1M count={MEGABYTES}"
        code, output = client.containers.get("trailer-web").exec_run(["sh", "-c", command])
        assert code == 0, output

    def start(self) -> ForkedAgent:
        self.agent = self._forks.start(self.host, self.engine.url, self._folder)
        return self.agent

    def close(self) -> None:
        self._forks.close()
        self.host.close()

    def kill_agent(self) -> None:
        self.agent.kill()

    def begin(self) -> str:
        """A new snapshot, once the container is paused for it; its build id."""
        number = next(self._numbers)
        build = DesiredBuild(id=f"b-snap-{number}", number=number)
        snapshot(self.host, build)
        self.agent.look_again()
        eventually(lambda: self._state() == "paused", 30, self.agent.log, interval=0.005)
        return build.id

    def ended(self, build_id: str) -> BuildStatus:
        def found() -> BuildStatus | None:
            build = self.host.server.build(build_id)
            over = build and build.status in {"finished", "failed", "cancelled"}
            return build if over else None

        result = eventually(found, 60, f"no end: {self.agent.log[-3000:]}")
        assert result is not None
        return result

    def check(self, build_id: str, what: str) -> BuildStatus:
        """The oracle of every kill."""
        result = self.ended(build_id)
        self._up(f"{what}: not running again")
        images = self.client.api.images(filters={"label": f"{naming.LABEL_BUILD}={build_id}"})
        if result.status == "finished":
            assert [image["Id"] for image in images] == [result.engine_id], what
            seen = self.client.images.get(REF).attrs
            assert seen["Id"] == result.engine_id, what
            assert seen["Size"] > MEGABYTES * 1024 * 1024, what
        else:
            assert images == [], f"{what}: {result} left {images}"
        assert images_with(self.client, SECRET) == [], what
        eventually(lambda: self.host.status("web").status == "running", 20, what)
        return result

    def clear(self) -> None:
        for image in self.client.api.images(name="trailer/i-snap"):
            self.client.api.remove_image(image["Id"], force=True)

    def _state(self) -> str:
        return state_of(self.client)[1]

    def _up(self, message: str) -> None:
        eventually(lambda: self._state() == "running", 30, f"{message}\n{self.agent.log[-2000:]}")


@pytest.fixture
def killing(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[Killing]:
    made = Killing(clean_engine, engine_client, tmp_path)
    yield made
    made.close()
    clean_engine.clean()
    made.clear()


def test_an_agent_killed_in_the_middle_leaves_it_to_the_next_one(killing: Killing) -> None:
    started = killing.client.api.inspect_container("trailer-web")["State"]["StartedAt"]
    since = int(time.time())
    for moment in MOMENTS:
        build_id = killing.begin()
        threading.Event().wait(moment)
        killing.kill_agent()
        killing.start()
        result = killing.check(build_id, f"agent killed after {moment} s")
        assert result.status == "finished", result
        killing.clear()
    seen = killing.client.api.inspect_container("trailer-web")["State"]
    assert seen["StartedAt"] == started
    assert [event.event for event in killing.host.events("web")] == ["create"]
    # What a dead agent had begun was looked for, not done again.
    commits = killing.client.api.events(
        since=since, until=int(time.time()) + 1, filters={"event": "commit"}
    )
    assert len(list(commits)) == len(MOMENTS)


@pytest.mark.parametrize("option", ["--live-restore=false", "--live-restore"])
def test_an_engine_killed_in_the_middle_leaves_no_paused_container(
    engine_factory: EngineFactory, tmp_path: Path, option: str
) -> None:
    engine = engine_factory(option)
    with closing(engine.client()) as client:
        killing = Killing(engine, client, tmp_path)
        try:
            for moment in (0.0, 0.15, 0.35, 0.7):
                build_id = killing.begin()
                threading.Event().wait(moment)
                engine.kill9()
                engine.start()
                killing.check(build_id, f"engine killed after {moment} s ({option})")
                killing.clear()
        finally:
            killing.close()


def test_both_killed_at_once(engine_factory: EngineFactory, tmp_path: Path) -> None:
    engine = engine_factory("--live-restore")
    with closing(engine.client()) as client:
        killing = Killing(engine, client, tmp_path)
        try:
            for moment in (0.05, 0.35):
                build_id = killing.begin()
                threading.Event().wait(moment)
                killing.kill_agent()
                engine.kill9()
                engine.start()
                killing.start()
                result = killing.check(build_id, f"both killed after {moment} s")
                assert result.status == "finished", result
                killing.clear()
        finally:
            killing.close()
