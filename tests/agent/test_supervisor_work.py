"""The agent as a whole: long work, overlapping cycles, cleanup and what is recorded of them."""

from dataclasses import replace

import msgspec
import pytest

from agent.protocol.report import CycleReport
from agent.protocol.spec import HealthCheckSpec
from agent.protocol.state import DesiredBuild
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, tombstone, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import always, eventually


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


def test_workspaces_can_exchange_their_names(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    names = ("one", "two", "three")
    fake_server.desire(images=(image(),), workspaces=tuple(workspace(name) for name in names))
    launch()
    for name in names:
        reaches(fake_server, "running", f"w-{name}")
    before = {name: runtime.named(f"trailer-{name}") for name in names}
    turned = dict(zip(names, ("two", "three", "one"), strict=True))
    fake_server.desire(
        images=(image(),),
        workspaces=tuple(workspace(turned[n], id=f"w-{n}", revision=2) for n in names),
    )

    def exchanged() -> bool:
        now = {name: runtime.named(f"trailer-{turned[name]}") for name in names}
        return all(
            a and b and a.id == b.id for a, b in zip(before.values(), now.values(), strict=True)
        )

    eventually(exchanged, 5, "they wait for each other")
    eventually(lambda: all(fake_server.events(f"w-{n}")[-1].event == "rename" for n in names))
    assert len(runtime.containers) == len(names)


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


@pytest.mark.parametrize("end", ["cancelled", "deleted"])
def test_what_is_left_of_a_build_that_nobody_takes_up_again_goes(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, end: str
) -> None:
    """The agent dies over a build, the host is paused, and then the build is no longer wanted."""
    built = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="FROM x")
    runtime.endless_builds = True
    fake_server.desire(images=(built,))
    agent = launch()
    eventually(lambda: "build_image" in runtime.mutations)
    fake_server.settings = msgspec.structs.replace(fake_server.settings, enabled=False)
    fake_server.desire(images=(built,))
    asked = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= asked + 2)
    agent.stop()
    build = DesiredBuild(id="b-app", number=1, cancel=True)
    ended = msgspec.structs.replace(built, build=build)
    fake_server.desire(images=(ended,) if end == "cancelled" else ())
    launch()
    result = eventually(
        lambda: (b := fake_server.build("b-app")) and b.status == "cancelled" and b
    )
    assert result
    causes = {"cancelled": "cancel requested", "deleted": "image was deleted"}
    assert result.message == f"Cancelled: {causes[end]}."
    eventually(lambda: "remove_build_containers" in runtime.mutations)
    always(lambda: runtime.mutations.count("remove_build_containers") == 1, 0.3, "repeated")
    assert runtime.mutations.count("build_image") == 1


def test_what_an_engine_left_that_died_over_each_try_goes(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    built = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="FROM x")
    runtime.broken_builds = 3
    fake_server.desire(images=(built,))
    launch()
    eventually(lambda: (b := fake_server.build("b-app")) and b.status == "failed", 10)
    # Its containers, and what was fetched for it.
    last = ["remove_build_containers", "remove_image"]
    eventually(lambda: runtime.mutations[-2:] == last, 10)
    assert runtime.mutations.count("build_image") == 3


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
    # A cycle is told when it has ended, after the statuses of its last steps.
    eventually(lambda: "deferred" in {cycle.cleanup for cycle in fake_server.cycles()}, 5)
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
    fake_server.desire(images=builds[:2])
    launch()
    eventually(lambda: runtime.mutations.count("build_image") == 2)
    # The last one comes later: which of three that come together has to wait is left to chance.
    fake_server.desire(images=builds)
    eventually(lambda: "b2" in {step.name for c in fake_server.cycles() for step in c.steps})
    always(lambda: runtime.mutations.count("build_image") == 2, 0.5, "a third one began")
    cancelled = tuple(
        msgspec.structs.replace(b, build=msgspec.structs.replace(b.build, cancel=True))
        for b in builds[:1]
        if b.build
    )
    fake_server.desire(images=cancelled + builds[1:])
    eventually(lambda: runtime.mutations.count("build_image") == 3)
