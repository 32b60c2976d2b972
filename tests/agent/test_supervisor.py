"""The agent as a whole: documents, settings, reports, and a server or engine in trouble."""

import threading

import msgspec
import pytest

from agent.protocol.session import EngineInfo
from agent.protocol.state import HostSettings
from agent.runtime.fake import FakeRuntime
from agent.runtime.fake_streams import FakeEvents
from agent.supervisor import EXIT_SUPERSEDED
from tests.agent.documents import image, tombstone, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import always, eventually


def test_from_document_to_running_to_gone(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "running")
    order = tombstone("workspace", "w-web", "trailer-web")
    fake_server.desire(images=(image(),), tombstones=(order,))
    eventually(lambda: fake_server.tombstone(order.id))
    assert runtime.containers == {}
    assert [e.event for e in fake_server.events("w-web")] == ["create", "remove"]
    assert agent.stop() == 0


def test_reports_wait_for_the_server_and_none_is_lost(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    fake_server.answers["/report"] = (500, b"<html>")
    first = runtime.named("trailer-web")
    assert first is not None
    runtime.remove_container(first.id, with_volumes=False)
    eventually(lambda: runtime.named("trailer-web"))
    assert [e.event for e in fake_server.events("w-web")] == ["create"]
    fake_server.answers.clear()
    eventually(lambda: [e.event for e in fake_server.events("w-web")] == ["create", "heal"], 15)


@pytest.mark.parametrize(
    "body", [b"<html>busy</html>", b"{}", b"null", b"", b'{"host_id": "other"}', b'{"a":']
)
def test_a_nonsense_document_changes_nothing(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, body: bytes
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    eventually(fake_server.cycles)
    runtime.mutations.clear()
    fake_server.raw_state = body
    eventually(lambda: any(c.outcome == "failed" for c in fake_server.cycles()))
    asked = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= asked + 2)
    assert runtime.mutations == []
    assert len([c for c in fake_server.cycles() if c.outcome == "failed"]) == 1


def test_settings_of_the_heartbeat_apply_at_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    fake_server.settings = msgspec.structs.replace(fake_server.settings, enabled=False)
    reaches(fake_server, "stopped")
    assert fake_server.status("w-web").message == "Host is disabled."  # type: ignore[union-attr]
    fake_server.settings = msgspec.structs.replace(fake_server.settings, enabled=True)
    reaches(fake_server, "running")


def test_hostile_intervals_are_clamped(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.settings = HostSettings(reconcile_interval=0, heartbeat_interval=-5)
    fake_server.desire(images=(image(),))
    launch()
    eventually(lambda: fake_server.book.requests.count("GET /state") >= 3)
    first = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= first + 2)
    beats = len(fake_server.book.heartbeats)
    assert beats <= fake_server.book.requests.count("GET /state") + 3


def test_a_superseded_agent_stops_changing_anything(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "running")
    fake_server.epoch += 1
    assert agent.ended() == EXIT_SUPERSEDED
    first = runtime.named("trailer-web")
    assert first is not None
    runtime.remove_container(first.id, with_volumes=False)
    always(lambda: runtime.named("trailer-web") is None, 0.5, "it still heals")


def test_a_revoked_agent_keeps_its_workspaces_and_asks_rarely(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    for path in ("/state", "/report", "/heartbeat", "/session"):
        fake_server.answers[path] = (401, b'{"code": "unauthorized"}')
    eventually(lambda: len(fake_server.book.requests) > 5)
    first = runtime.named("trailer-web")
    assert first is not None
    runtime.remove_container(first.id, with_volumes=False)
    eventually(lambda: runtime.named("trailer-web"))

    def asked() -> int:
        return sum("ws" not in request for request in fake_server.book.requests)

    before = asked()
    # Each of the three loops may find out for itself, once.
    always(lambda: asked() <= before + 3, 2.0, "it keeps knocking")


def test_an_engine_that_is_away_is_told_once_and_healed(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    runtime.away = True
    fake_server.desire(images=(image(),), workspaces=(workspace(), workspace("late")))
    eventually(lambda: fake_server.book.heartbeats[-1].message)

    def failed() -> int:
        return len([c for c in fake_server.cycles() if c.outcome == "failed"])

    eventually(lambda: failed() == 1)
    asked = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= asked + 3)
    assert failed() == 1
    runtime.away = False
    reaches(fake_server, "running", "w-late")
    eventually(lambda: not fake_server.book.heartbeats[-1].message)


def test_a_failing_workspace_backs_off_until_it_is_edited(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.failing["start_container"] = 1
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "error")
    runtime.mutations.clear()
    asked = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= asked + 2)
    assert runtime.mutations == []
    fake_server.desire(images=(image(),), workspaces=(workspace(revision=2),))
    reaches(fake_server, "running", revision=2)


def test_a_first_connection_to_the_event_stream_ends_no_back_off(
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, introduce = runtime.events, runtime.info
    may_connect, connected = threading.Event(), threading.Event()

    def late(since: int = 0) -> FakeEvents:
        may_connect.wait(10)
        return connect(since)

    def asked() -> EngineInfo:
        # The agent asks once it is connected.
        if may_connect.is_set():
            connected.set()
        return introduce()

    monkeypatch.setattr(runtime, "events", late)
    monkeypatch.setattr(runtime, "info", asked)
    runtime.failing["start_container"] = 1
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "error")
    failures = agent.supervisor.parts.failures
    assert failures.next_due()
    may_connect.set()
    assert connected.wait(10)
    assert failures.next_due()


def test_an_event_stream_that_was_away_ends_every_back_off(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.failing["start_container"] = 1
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "error")
    assert agent.supervisor.parts.failures.next_due()
    agent.supervisor.engine.close()
    reaches(fake_server, "running")


def test_a_new_session_is_told_everything_again(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "running")
    agent.stop()
    fake_server.book.items.clear()
    launch()
    reaches(fake_server, "running")
