"""Little room on the engine's disk: nothing new begins, stopping and removing go on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.plan import BuildFinding
from agent.protocol.state import HostSettings
from agent.runtime.fake import FakeRuntime
from agent.work.disk import DiskBrake
from tests.agent.bench import Bench
from tests.agent.documents import document, image, tombstone, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Running, reaches
from tests.agent.test_snapshots import snap
from tests.ground.wait import always, eventually

LEAST = HostSettings().disk_free_min_bytes
LOW = "Waiting for disk space: no room."


class Disk:
    """Free space as a test wants it."""

    def __init__(self) -> None:
        self.free: int | None = LEAST

    def read(self, path: str) -> int | None:
        assert path == "/fake"
        return self.free


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def launch(
    fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path, disk: Disk
) -> Iterator[Callable[[], Running]]:
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(fake_server, runtime, tmp_path, free_bytes=disk.read))
        return started[-1]

    yield start
    for running in started:
        running.stop()


def test_the_edge_itself_is_enough_and_one_byte_less_is_not() -> None:
    def message(free: int | None, *, root: str = "/data", **settings: Any) -> str:
        host = HostSettings(**settings)
        return DiskBrake(root=lambda: root, settings=lambda: host, free=lambda _: free).message()

    assert message(LEAST) == ""
    assert message(LEAST - 1) == (
        "Waiting for disk space: 2.0 GiB are free where the engine keeps its data, "
        "and this host keeps 2.0 GiB free."
    )
    assert "0 bytes are free" in message(0)
    # Not visible, not known, switched off: no brake.
    assert message(None) == ""
    assert message(0, root="") == ""
    assert message(0, disk_free_min_bytes=0) == ""


def test_nothing_new_is_planned_and_each_build_says_why(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(),)))
    built = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="X")
    pull = image("more", ref="reg.example/more:1", done=False)
    desired = document(images=(image(), built, pull, snap()), workspaces=(workspace(),))
    plan = bench.plan(desired, disk_low=LOW)
    assert plan.nodes == ()
    waiting = {f.build_id: f for f in plan.findings if isinstance(f, BuildFinding)}
    assert set(waiting) == {"b-app", "b-more", "b-snap"}
    assert {(f.status, f.message) for f in waiting.values()} == {("pending", LOW)}
    assert len(bench.plan(desired).nodes) == 3


def test_a_vanished_image_is_not_fetched_again_meanwhile(bench: Bench) -> None:
    desired = document(
        images=(image("app", ref="reg.example/app:1"),),
        workspaces=(workspace(image_ref="reg.example/app:1", image_id="i-app"),),
    )
    assert bench.plan(desired, disk_low=LOW).nodes == ()
    assert [n.step.verb for n in bench.plan(desired).nodes] == ["pull_image"]


def test_removals_go_on(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(),)))
    order = tombstone("workspace", "w-web", "trailer-web")
    plan = bench.plan(document(tombstones=(order,)), disk_low=LOW)
    assert [n.step.verb for n in plan.nodes] == ["stop_container", "remove_container"]


def test_a_full_disk_is_told_and_work_resumes_by_itself(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Callable[[], Running], disk: Disk
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    disk.free = 0
    built = image("app", kind="build", ref="trailer/i-app:latest", done=False, dockerfile="FROM x")
    fake_server.desire(images=(image(), built), workspaces=(workspace(desired_state="stopped"),))
    eventually(lambda: (b := fake_server.build("b-app")) and "disk space" in b.message, 10)
    assert fake_server.build("b-app").status == "pending"  # type: ignore[union-attr]
    reaches(fake_server, "stopped")
    eventually(lambda: "disk space" in fake_server.book.heartbeats[-1].message, 10)
    always(lambda: "build_image" not in runtime.mutations, 0.5, "built on a full disk")
    disk.free = LEAST
    eventually(lambda: (b := fake_server.build("b-app")) and b.status == "finished", 10)
    eventually(lambda: fake_server.book.heartbeats[-1].message == "", 10)


def test_what_waits_for_its_turn_does_not_begin_either(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Callable[[], Running], disk: Disk
) -> None:
    runtime.endless_builds = True
    builds = tuple(
        image(f"b{n}", kind="build", ref=f"trailer/i-b{n}:latest", done=False, dockerfile="X")
        for n in range(3)
    )
    fake_server.desire(images=builds)
    agent = launch()
    eventually(lambda: runtime.mutations.count("build_image") == 2)
    disk.free = 0
    agent.supervisor.parts.works.advance()

    def told() -> bool:
        """Which of the three came too late is left to chance."""
        known = [fake_server.build(f"b-b{n}") for n in range(3)]
        return any(b and "disk space" in b.message for b in known)

    eventually(told, 10)
    assert runtime.mutations.count("build_image") == 2
