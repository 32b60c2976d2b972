"""A maintenance window happens once per number, whatever fails in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.errors import EngineUnavailable, NotFound
from agent.loop.maintenance import Maintenance
from agent.runtime.docker_disk import DockerDisk, describe_usage
from agent.store.database import Database

if TYPE_CHECKING:
    from pathlib import Path


class Engine:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = False

    def disk_report(self) -> str:
        self.done.append("disk")
        if self.broken:
            raise EngineUnavailable("The container engine did not answer in time.")
        return "images 3 GB"

    def prune_images(self) -> str:
        self.done.append("images")
        return ""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.engine = Engine()
        self.wanted: int | None = 4
        self.reports: list[Any] = []
        self.database = Database(folder / "agent.sqlite3")

    def agent(self) -> Maintenance:
        """As after each start."""
        reporter: Any = type(
            "Reporter", (), {"cycle": lambda _, item: self.reports.append(item)}
        )()
        return Maintenance(
            self.engine,
            database=self.database,
            reporter=reporter,
            wanted=lambda: self.wanted,
            check_digests=lambda: self.engine.done.append("digests"),
            next_cycle=lambda: 7,
            on_end=lambda: self.engine.done.append("fresh agent"),
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_new_agent_waits_for_the_next_window(scene: Scene) -> None:
    agent = scene.agent()
    assert not agent.is_due()
    scene.wanted = 5
    assert agent.is_due()
    assert not agent.is_due()


def test_an_agent_that_was_told_nothing_yet_takes_no_old_window_for_a_new_one(
    scene: Scene,
) -> None:
    scene.wanted = None
    agent = scene.agent()
    assert not agent.is_due()
    scene.wanted = 4
    assert not agent.is_due()
    scene.wanted = 5
    assert agent.is_due()


def test_a_window_that_was_ordered_while_the_agent_was_away_is_made_up_for_once(
    scene: Scene,
) -> None:
    scene.agent().is_due()
    scene.wanted = 6
    assert scene.agent().is_due()
    assert not scene.agent().is_due()


def test_a_restored_server_that_counts_back_asks_for_nothing(scene: Scene) -> None:
    scene.agent().is_due()
    scene.wanted = 2
    assert not scene.agent().is_due()
    scene.wanted = 3
    assert scene.agent().is_due()


def test_the_parts_come_in_order_and_end_with_a_fresh_agent(scene: Scene) -> None:
    scene.agent().work()
    assert scene.engine.done == ["digests", "disk", "images", "fresh agent"]
    (report,) = scene.reports
    assert (report.trigger, report.outcome) == ("maintenance", "ok")
    assert "images 3 GB" in report.message


def test_a_part_that_fails_is_told_and_keeps_no_other_from_its_turn(scene: Scene) -> None:
    scene.engine.broken = True
    scene.agent().work()
    assert scene.engine.done == ["digests", "disk", "images", "fresh agent"]
    assert scene.reports[0].outcome == "failed"
    assert "did not answer" in scene.reports[0].message


def test_the_disk_is_described_in_words() -> None:
    raw = {
        "LayersSize": 3_200_000_000,
        "Containers": [{"SizeRw": 1500}, {"SizeRw": None}],
        "Volumes": [{"UsageData": {"Size": -1}}, {"UsageData": {"Size": 42}}],
        "BuildCache": None,
    }
    said = describe_usage(raw)
    assert said == "disk: images 3.2 GB, containers 1.5 kB, volumes 42 B, build cache 0 B"


class Pruned:
    """What the engine is asked to prune."""

    def __init__(self, *, api_version: str = "1.41", has_buildkit: bool = True) -> None:
        self.api_version = api_version
        self.asked: list[object] = []
        self._has_buildkit = has_buildkit

    def run(self, call: Any, **_: Any) -> Any:
        return call(self)

    def prune_images(self, only: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(only)
        return {"ImagesDeleted": [{"Deleted": "a"}], "SpaceReclaimed": 1500}

    def prune_builds(self, filters: dict[str, Any]) -> dict[str, Any]:
        if not self._has_buildkit:
            raise NotFound("page not found")
        self.asked.append(filters)
        return {"CachesDeleted": ["x"], "SpaceReclaimed": 2_000_000}


def pruned(engine: Any) -> str:
    disk = DockerDisk()
    disk._engine = engine
    return disk.prune_images()


def test_build_cache_that_was_not_used_for_a_week_goes_with_the_layers_of_older_builds() -> None:
    engine = Pruned()
    assert pruned(engine) == (
        "1 layer of older builds removed, 1.5 kB, build cache unused for 7 days removed, 2.0 MB"
    )
    assert engine.asked[1] == {"until": "168h"}


@pytest.mark.parametrize("engine", [Pruned(api_version="1.38"), Pruned(has_buildkit=False)])
def test_an_engine_without_such_a_cache_is_not_asked_for_it(engine: Pruned) -> None:
    assert pruned(engine) == "1 layer of older builds removed, 1.5 kB"
    assert len(engine.asked) == 1
