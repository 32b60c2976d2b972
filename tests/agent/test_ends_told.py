"""The whole agent on an engine in memory: each end and restart of a container is told once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.runtime.port import EngineEvent
from tests.agent.documents import image, workspace
from tests.agent.running import reaches
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch, Running

LABELS = {"trailer.workspace": "w-web"}


class Engine:
    """What a real one does when a container's process ends: an event, and a restart counted."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime
        self.now = 10**18

    @property
    def id(self) -> str:
        found = self.runtime.named("trailer-web")
        assert found is not None
        return found.id

    def tell(self, action: str, *, silently: bool = False, **fields: Any) -> None:
        self.now += 1000
        event = EngineEvent(
            kind="container",
            action=action,
            id=self.id,
            container_id=self.id,
            workspace_id="w-web",
            at=self.now,
            **fields,
        )
        self.runtime.past_events.append(event)
        if not silently:
            for stream in self.runtime._streams:
                stream.queue.put(event)

    def end(self, code: int, *, silently: bool = False, heard: bool = True) -> None:
        """The process ends by itself, and the engine starts it again."""
        container = self.runtime.containers[self.id]
        self.runtime.containers[self.id] = replace(
            container,
            restart_count=container.restart_count + 1,
            started_at=f"2026-01-31T08:00:{container.restart_count:02}Z",
            log_tail="password=hunter2hunter2\nbye",
        )
        if heard:
            self.tell("die", exit_code=code, silently=silently)
            self.tell("start", silently=silently)


def running(server: FakeServer, runtime: FakeRuntime, launch: Launch) -> tuple[Engine, Running]:
    server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(server, "running")
    engine = Engine(runtime)
    container = runtime.containers[engine.id]
    runtime.containers[engine.id] = replace(container, started_at="2026-01-31T07:00:00Z")
    engine.tell("health_status")
    return engine, agent


def told(server: FakeServer) -> list[tuple[str, int | None, int]]:
    rows = [e for e in server.events("w-web") if e.event in ("crashed", "restarted")]
    return [(row.event, row.exit.code if row.exit else None, row.count) for row in rows]


def total(server: FakeServer) -> int:
    return sum(count for _, _, count in told(server))


def test_a_crash_and_a_clean_end_are_each_told_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    engine, _ = running(fake_server, runtime, launch)
    engine.end(3)
    eventually(lambda: told(fake_server) == [("crashed", 3, 1)], 10)
    engine.end(0)
    eventually(lambda: told(fake_server)[1:] == [("restarted", 0, 1)], 10)
    row = next(e for e in fake_server.events("w-web") if e.event == "crashed")
    assert row.last_lines.endswith("bye")
    assert "hunter2" not in row.last_lines


def test_what_happened_while_the_agent_was_away_is_told_from_what_the_engine_remembers(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    engine, agent = running(fake_server, runtime, launch)
    engine.end(3)
    eventually(lambda: total(fake_server) == 1, 10)
    agent.stop()
    engine.end(4, silently=True)
    engine.end(4, silently=True)
    launch()
    eventually(lambda: total(fake_server) >= 3, 10)
    assert {kind for kind, *_ in told(fake_server)} == {"crashed"}
    assert total(fake_server) == 3


def test_an_agent_that_heard_nothing_yet_leaves_where_the_next_one_begins(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire()
    agent = launch()
    eventually(lambda: runtime._streams, 10)
    agent.stop()
    began = agent.supervisor.parts.ends.since()
    assert abs(time.time() - began / 10**9) < 60


def test_restarts_that_no_event_told_are_one_entry_without_a_cause(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    engine, _ = running(fake_server, runtime, launch)
    for _ in range(4):
        engine.end(3, heard=False)
    engine.tell("health_status")
    eventually(lambda: told(fake_server) == [("restarted", None, 4)], 10)


def test_a_stop_of_ours_is_no_crash(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    running(fake_server, runtime, launch)
    fake_server.desire(
        images=(image(),), workspaces=(workspace(revision=2, desired_state="stopped"),)
    )
    reaches(fake_server, "stopped", revision=2)
    assert told(fake_server) == []
