"""The rule against metadata addresses: set when wanted, seldom, and removed only by its maker."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from agent import clock
from agent.errors import EngineUnavailable, GuardError
from agent.guard.decide import AGAIN, Act, decide
from agent.guard.local import is_engine_here
from agent.host_policy import FILE_NAME
from agent.loop.guard import MetadataGuard
from agent.protocol.state import HostSettings
from agent.store.database import Database
from tests.agent.running import Running
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer


def act(
    *,
    wanted: bool | None = True,
    made: bool = True,
    is_in_place: bool | None = None,
    age: float | None = 60.0,
) -> Act:
    return decide(wanted=wanted, made=made, is_in_place=is_in_place, age=age)


def test_where_a_look_is_cheap_it_decides() -> None:
    assert act(is_in_place=True, age=None) is Act.REST
    assert act(is_in_place=False) is Act.PUT


def test_where_a_look_is_dear_the_rule_is_set_once_per_start_and_quarter_of_an_hour() -> None:
    assert act() is Act.REST
    assert act(age=None) is Act.PUT
    assert act(age=AGAIN) is Act.PUT
    assert AGAIN == 15 * 60


def test_only_what_this_agent_made_is_removed_and_an_older_server_orders_nothing() -> None:
    assert act(wanted=False) is Act.REMOVE
    assert act(wanted=False, made=False) is Act.REST
    assert act(wanted=None) is Act.REST
    assert act(wanted=None, age=None) is Act.REST


class Filter:
    """A packet filter; `is_dear`: looking costs as much as setting."""

    def __init__(self) -> None:
        self.is_set = False
        self.is_dear = False
        self.done: list[str] = []
        self.trouble: BaseException | None = None

    def is_in_place(self) -> bool | None:
        return None if self.is_dear else self.is_set

    def put(self) -> None:
        self._act("put", is_set=True)

    def remove(self) -> None:
        self._act("remove", is_set=False)

    def _act(self, name: str, *, is_set: bool) -> None:
        self.done.append(name)
        if self.trouble is not None:
            raise self.trouble
        self.is_set = is_set


class Scene:
    def __init__(self, folder: Path) -> None:
        self.database = Database(folder / "agent.sqlite3")
        self.filter = Filter()
        self.wanted: bool | None = True
        self.changes = 0
        self.found = 0

    def agent(
        self, kind: type[MetadataGuard] = MetadataGuard, *, is_allowed: bool = True
    ) -> MetadataGuard:
        """As after each start."""
        return kind(
            self.find,
            database=self.database,
            wanted=lambda: self.wanted,
            is_allowed=is_allowed,
            on_change=self.changed,
        )

    def find(self) -> Filter:
        self.found += 1
        return self.filter

    def changed(self) -> None:
        self.changes += 1


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that retries are measured in, as its only element."""
    at = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: at[0])
    return at


def test_a_rule_that_somebody_flushed_is_back_after_the_next_look(scene: Scene) -> None:
    agent = scene.agent()
    agent.look()
    agent.look()
    assert (agent.state.state, agent.state.message) == ("blocked", "")
    assert (scene.filter.done, scene.changes) == (["put"], 1)
    scene.filter.is_set = False
    agent.look()
    assert scene.filter.done == ["put", "put"]


def test_where_a_look_is_dear_starts_of_agent_and_engine_and_time_that_passes_set_it_anew(
    scene: Scene, now: list[float]
) -> None:
    scene.filter.is_dear = True
    scene.agent().look()
    again = scene.agent()
    again.look()
    again.look()
    assert scene.filter.done == ["put"] * 2
    again.engine_returned()
    again.look()
    again.look()
    assert scene.filter.done == ["put"] * 3
    now[0] += AGAIN
    again.look()
    again.look()
    assert scene.filter.done == ["put"] * 4
    assert again.state.state == "blocked"
    assert scene.changes == 2


def test_what_an_agent_set_when_it_was_killed_is_removed_by_the_next(scene: Scene) -> None:
    scene.filter.trouble = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        scene.agent().look()
    scene.filter.trouble = None
    scene.wanted = False
    scene.agent().look()
    scene.agent().look()
    assert scene.filter.done == ["put", "remove"]


def test_switched_off_the_rule_goes_and_nothing_is_done_for_one_that_was_never_set(
    scene: Scene,
) -> None:
    scene.wanted = False
    agent = scene.agent()
    agent.look()
    assert agent.state.state == "open"
    assert (scene.filter.done, scene.found) == ([], 0)
    scene.wanted = True
    agent.look()
    scene.wanted = False
    agent.look()
    agent.look()
    assert scene.filter.done == ["put", "remove"]
    assert agent.state.state == "open"


def test_a_rule_from_before_the_agent_lost_its_memory_is_ours_to_remove(scene: Scene) -> None:
    scene.filter.is_set = True
    agent = scene.agent()
    agent.look()
    scene.wanted = False
    agent.look()
    assert scene.filter.done == ["remove"]


def test_a_server_that_does_not_know_the_setting_leaves_all_as_it_is(scene: Scene) -> None:
    scene.agent().look()
    scene.wanted = None
    agent = scene.agent()
    agent.look()
    assert scene.filter.is_set
    assert agent.state.state == ""


def test_the_hosts_own_policy_stands_above_the_server(scene: Scene) -> None:
    scene.agent().look()
    agent = scene.agent(is_allowed=False)
    agent.look()
    assert not scene.filter.is_set
    assert agent.state.state == "open"
    assert "This host's policy does not allow metadata_guard" in agent.state.message


@pytest.mark.parametrize(
    "trouble", [GuardError("This kernel has no nf_tables."), EngineUnavailable("Away.")]
)
def test_what_cannot_be_set_is_told_and_tried_again_later_and_later(
    scene: Scene, now: list[float], trouble: Exception
) -> None:
    scene.filter.trouble = trouble
    agent = scene.agent()
    agent.look()
    assert (agent.state.state, agent.state.message) == ("open", str(trouble))
    # A host that is edited all the time wakes it without end.
    agent.look()
    assert scene.filter.done == ["put"]
    tries = 1
    for _ in range(12):
        now[0] += 3600
        agent.look()
        tries += 1
    assert len(scene.filter.done) == tries
    assert scene.changes == 1
    scene.filter.trouble = None
    now[0] += 3600
    agent.look()
    assert (agent.state.state, agent.state.message) == ("blocked", "")


def test_a_change_of_the_setting_and_an_engine_that_returned_do_not_wait(
    scene: Scene, now: list[float]
) -> None:
    scene.filter.trouble = GuardError("Not now.")
    agent = scene.agent()
    agent.look()
    agent.engine_returned()
    agent.look()
    assert scene.filter.done == ["put", "put"]
    scene.wanted = False
    agent.look()
    assert scene.filter.done == ["put", "put", "remove"]
    assert now == [1000.0]


class Forgetful(MetadataGuard):
    """Another thread forgets the way whenever it was found."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, None if name == "_guard" else value)


def test_an_engine_that_returns_while_the_way_is_looked_up_does_no_harm(scene: Scene) -> None:
    agent = scene.agent(Forgetful)
    agent.look()
    assert (scene.filter.done, agent.state.state) == (["put"], "blocked")


def test_an_engine_elsewhere_gets_no_rule_on_this_machine(tmp_path: Path) -> None:
    mine = platform.node()
    assert not is_engine_here({"DOCKER_HOST": "tcp://10.0.0.7:2376"}, mine)
    assert not is_engine_here({"DOCKER_HOST": "ssh://root@10.0.0.7"}, mine)
    assert not is_engine_here({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}, mine)


# --- in the whole agent --------------------------------------------------------------------------


def newest(server: FakeServer) -> str:
    beats = server.book.heartbeats
    return beats[-1].metadata_guard if beats else ""


def test_the_setting_travels_with_a_heartbeat_and_what_came_of_it_with_the_next(
    fake_server: FakeServer, runtime: FakeRuntime, scene: Scene, tmp_path: Path
) -> None:
    fake_server.settings = HostSettings(heartbeat_interval=1.0, block_metadata=True)
    agent = Running(fake_server, runtime, tmp_path, find_guard=scene.find)
    try:
        eventually(lambda: newest(fake_server) == "blocked", 10, "never blocked")
        assert scene.filter.is_set
        fake_server.settings = HostSettings(heartbeat_interval=1.0, block_metadata=False)
        eventually(lambda: newest(fake_server) == "open", 10, "never open")
        assert scene.filter.done == ["put", "remove"]
    finally:
        agent.stop()


def test_a_policy_file_that_forbids_it_is_obeyed_and_told(
    fake_server: FakeServer, runtime: FakeRuntime, scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).write_text("metadata_guard = false\n")
    fake_server.settings = HostSettings(heartbeat_interval=1.0, block_metadata=True)
    agent = Running(fake_server, runtime, tmp_path, find_guard=scene.find)
    try:
        eventually(lambda: newest(fake_server) == "open", 10, "nothing told")
        assert "policy" in fake_server.book.heartbeats[-1].metadata_message
        assert scene.filter.done == []
    finally:
        agent.stop()
