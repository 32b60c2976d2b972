"""A maintenance window happens once per number, whatever fails in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.errors import EngineUnavailable
from agent.loop.maintenance import Maintenance
from agent.runtime.docker_disk import describe_usage
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
