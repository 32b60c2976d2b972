"""The whole agent in one process: real HTTP to a fake server, an engine in memory."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from agent.config import Config
from agent.protocol.report import CycleReport
from agent.protocol.spec import HealthCheckSpec
from agent.protocol.state import DesiredBuild, HostSettings
from agent.runtime.fake import FakeRuntime
from agent.server.http import HttpServer
from agent.store.identity import Identity
from agent.supervisor import EXIT_SUPERSEDED, Supervisor
from tests.agent.documents import IMAGE_REF, image, tombstone, workspace
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN, FakeServer
from tests.ground.wait import always, eventually


class Running:
    """A supervisor in a thread."""

    def __init__(self, server: FakeServer, runtime: FakeRuntime, folder: Path) -> None:
        config = Config(server_url=server.url, state_dir=folder)
        identity = Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY)
        http = HttpServer(server.url, token=TOKEN)
        self.supervisor = Supervisor(config, identity, runtime=runtime, server=http)
        server.nudge = self.supervisor.poll.nudge
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.code = self.supervisor.run()

    def stop(self) -> int | None:
        self.supervisor.stop()
        self._thread.join(15)
        return self.code

    def ended(self) -> int | None:
        self._thread.join(15)
        return self.code


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add_image(IMAGE_REF)
    return runtime


Launch = Callable[[], Running]


@pytest.fixture
def launch(fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path) -> Iterator[Launch]:
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(fake_server, runtime, tmp_path))
        return started[-1]

    yield start
    for running in started:
        running.stop()


def reaches(server: FakeServer, word: str, workspace_id: str = "w-web", revision: int = 1) -> None:
    def there() -> bool:
        status = server.status(workspace_id)
        return status is not None and (status.status, status.revision) == (word, revision)

    eventually(there, 10, f"never {word}: {server.status(workspace_id)}")


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


def test_slow_work_never_holds_back_other_work(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    slow = image("slow", kind="build", ref="trailer/i-slow:latest", done=False, dockerfile="X")
    waits = workspace("waits", image_ref=slow.ref, image_id=slow.id)
    fake_server.desire(images=(image(), slow), workspaces=(workspace(), waits))
    launch()
    reaches(fake_server, "running")
    reaches(fake_server, "deployment_pending", "w-waits")
    edited = workspace(revision=2, env={"A": "1"})
    fake_server.desire(images=(image(), slow), workspaces=(edited, waits, workspace("more")))
    reaches(fake_server, "running", revision=2)
    reaches(fake_server, "running", "w-more")
    order = tombstone("workspace", "w-more", "trailer-more")
    fake_server.desire(images=(image(), slow), workspaces=(edited, waits), tombstones=(order,))
    eventually(lambda: fake_server.tombstone(order.id), 3)
    assert runtime.named("trailer-more") is None
    assert runtime.mutations.count("build_image") == 1
    cancelled = image(
        "slow",
        kind="build",
        ref="trailer/i-slow:latest",
        dockerfile="X",
        build=DesiredBuild(id="b-slow", number=1, cancel=True),
    )
    fake_server.desire(images=(image(), cancelled), workspaces=(edited, waits))
    eventually(lambda: (b := fake_server.build("b-slow")) and b.status == "cancelled")
    reaches(fake_server, "error", "w-waits")


def test_a_build_is_logged_reported_and_used(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    built = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="FROM x")
    web = workspace(image_ref=built.ref, image_id=built.id)
    fake_server.desire(images=(built,), workspaces=(web,))
    launch()
    reaches(fake_server, "running")
    result = fake_server.build("b-app")
    assert result is not None
    assert (result.status, result.progress) == ("finished", 100)
    log = fake_server.book.logs["b-app"]
    assert log.startswith(b"Step 1/1 : FROM x\nok\n")
    assert result.log_bytes == len(log)


def test_a_failed_build_says_why_and_the_workspace_names_the_image(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    broken = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="FAIL")
    web = workspace(image_ref=broken.ref, image_id=broken.id)
    fake_server.desire(images=(broken,), workspaces=(web,))
    launch()
    reaches(fake_server, "error")
    assert fake_server.build("b-app").message == "returned code 1"  # type: ignore[union-attr]
    assert "Image app could not be built" in str(fake_server.status("w-web"))


def test_a_lost_build_result_is_told_again_in_the_next_session(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(done=False),))
    agent = launch()
    eventually(lambda: fake_server.build("b-bb"))
    agent.stop()
    fake_server.book.items.clear()
    launch()
    eventually(lambda: (b := fake_server.build("b-bb")) and b.status == "finished")
    assert fake_server.book.sessions == 2


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


def test_each_cycle_that_did_something_is_recorded(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")

    def recorded() -> CycleReport | None:
        return next((c for c in fake_server.cycles() if c.steps), None)

    cycle = eventually(recorded)
    assert cycle is not None
    assert (cycle.outcome, cycle.cleanup) == ("ok", "skipped")
    assert [(s.step, s.outcome) for s in cycle.steps] == [
        ("create_container", "ok"),
        ("start_container", "ok"),
    ]
    assert cycle.engine_calls >= 3


def test_mass_removal_is_held_and_said_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    many = tuple(workspace(f"w{n}") for n in range(5))
    fake_server.desire(images=(image(),), workspaces=many)
    launch()
    for number in range(5):
        reaches(fake_server, "running", f"w-w{number}")
    fake_server.desire(images=(image(),))
    eventually(lambda: any(c.cleanup == "held" for c in fake_server.cycles()))
    asked = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= asked + 2)
    assert len(runtime.containers) == 5
    assert len([c for c in fake_server.cycles() if c.cleanup == "held"]) == 1


def test_cleanup_does_not_wait_for_a_slow_older_cycle(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    check = HealthCheckSpec(test=("CMD", "true"))
    web = workspace(health_check=check)
    fake_server.desire(images=(image(),), workspaces=(web, workspace("old")))
    launch()
    reaches(fake_server, "running")
    reaches(fake_server, "running", "w-old")
    runtime.first_health = "starting"
    edited = workspace(health_check=check, env={"A": "1"}, revision=2)
    order = tombstone("workspace", "w-old", "trailer-old")
    # One cycle gets both: a replace that waits for health, and a removal behind it.
    fake_server.desire(images=(image(),), workspaces=(edited,), tombstones=(order,))
    eventually(lambda: fake_server.tombstone(order.id), 5)
    assert runtime.named("trailer-web-next") is not None
    waiting = runtime.named("trailer-web-next")
    assert waiting is not None
    runtime.containers[waiting.id] = replace(waiting, health="healthy")
    reaches(fake_server, "running", revision=2)
    assert runtime.named("trailer-web-next") is None
    assert "deferred" in {cycle.cleanup for cycle in fake_server.cycles()}
    assert [e.event for e in fake_server.events("w-old")] == ["create", "remove"]


def test_a_newer_revision_ends_the_wait_for_an_older_one(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    check = HealthCheckSpec(test=("CMD", "true"))
    fake_server.desire(images=(image(),), workspaces=(workspace(health_check=check),))
    launch()
    reaches(fake_server, "running")
    runtime.first_health = "starting"
    second = workspace(health_check=check, env={"A": "2"}, revision=2)
    fake_server.desire(images=(image(),), workspaces=(second,))
    eventually(lambda: runtime.named("trailer-web-next"))
    runtime.first_health = "healthy"
    third = workspace(health_check=check, env={"A": "3"}, revision=3)
    fake_server.desire(images=(image(),), workspaces=(third,))
    reaches(fake_server, "running", revision=3)
    only = runtime.named("trailer-web")
    assert only is not None
    assert runtime.requests[only.id].env == {"A": "3"}
    assert len(runtime.containers) == 1


def test_only_so_many_builds_run_at_once(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    fake_server.settings = msgspec.structs.replace(fake_server.settings, build_parallel=2)
    builds = tuple(
        image(f"b{n}", kind="build", ref=f"trailer/i-b{n}:latest", done=False, dockerfile="X")
        for n in range(3)
    )
    fake_server.desire(images=builds)
    launch()
    eventually(lambda: runtime.mutations.count("build_image") == 2)
    always(lambda: runtime.mutations.count("build_image") == 2, 0.5, "a third one began")
    cancelled = tuple(
        msgspec.structs.replace(b, build=msgspec.structs.replace(b.build, cancel=True))
        for b in builds[:1]
        if b.build
    )
    fake_server.desire(images=cancelled + builds[1:])
    eventually(lambda: runtime.mutations.count("build_image") == 3)
