"""Ends of containers: which are new, from the engine's counter and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.diff.ends import Death, Run, ends_since, signal_of
from agent.observed import ObservedContainer
from agent.protocol.report import ContainerExit, WorkspaceEvent
from agent.store.database import Database
from agent.store.outbox import Outbox

if TYPE_CHECKING:
    from pathlib import Path

RAN = Run(restart_count=2, started_at="t0", ended_at=10)
Told = list[tuple[str, int | None, int]]


def container(**fields: Any) -> ObservedContainer:
    given = {"state": "running", "restart_count": 2, "started_at": "t0", **fields}
    return ObservedContainer(id="c", name="trailer-web", restart_policy="unless-stopped", **given)


def died(at: int, code: int = 3, **fields: Any) -> Death:
    return Death(at=at, code=code, **fields)


def told(
    deaths: tuple[Death, ...],
    seen: ObservedContainer,
    run: Run = RAN,
    *,
    patient: bool = False,
    engine_lost: bool = False,
) -> Told:
    verdict = ends_since(run, deaths, seen, patient=patient, engine_lost=engine_lost)
    return [(end.kind, end.exit.code if end.exit else None, end.count) for end in verdict.ends]


def test_nothing_new_is_nothing_told() -> None:
    verdict = ends_since(RAN, (), container(), patient=True)
    assert (verdict.ends, verdict.run, verdict.is_short) == ((), RAN, False)


def test_each_restart_is_told_with_how_it_came_to_it() -> None:
    seen = container(restart_count=4, started_at="t2")
    assert told((died(11), died(12, 0)), seen) == [("crashed", 3, 1), ("restarted", 0, 1)]


def test_an_end_that_was_told_is_not_told_again() -> None:
    assert told((died(9), died(10)), container()) == []


def test_what_the_engine_counted_and_nobody_heard_is_one_entry() -> None:
    assert told((died(11),), container(restart_count=9, started_at="t7")) == [
        ("crashed", 3, 1),
        ("restarted", None, 6),
    ]


def test_an_event_may_come_after_the_look_that_saw_its_restart() -> None:
    seen = container(restart_count=3, started_at="t1")
    early = ends_since(RAN, (), seen, patient=True)
    assert (early.ends, early.run, early.is_short) == ((), None, True)
    assert told((died(11),), seen, patient=True) == [("crashed", 3, 1)]


def test_an_event_may_come_before_the_look_that_sees_its_restart() -> None:
    verdict = ends_since(RAN, (died(11),), container(), patient=True)
    assert (verdict.ends, verdict.left) == ((), (died(11),))


def test_what_was_stopped_did_not_crash() -> None:
    stopped = container(state="exited")
    assert told((died(11, 137, killed=True),), stopped) == []
    # Nor if the order to it was not heard.
    assert told((died(11, 137),), stopped) == []


def test_a_crash_before_the_stop_is_told() -> None:
    stopped = container(state="exited", restart_count=3)
    assert told((died(11), died(12, 143, killed=True)), stopped) == [("crashed", 3, 1)]


def test_a_restart_that_the_engine_was_about_to_make_is_not_told_again() -> None:
    waiting = container(state="restarting", restart_count=3)
    verdict = ends_since(RAN, (died(11),), waiting, patient=True)
    assert len(verdict.ends) == 1
    assert verdict.run is not None
    assert told((), container(restart_count=3, started_at="t5"), verdict.run) == []


def test_without_a_restart_policy_an_end_is_told_too() -> None:
    seen = ObservedContainer(
        id="c",
        name="trailer-web",
        state="exited",
        restart_count=2,
        started_at="t0",
        restart_policy="no",
    )
    assert told((died(11),), seen) == [("crashed", 3, 1)]


def test_after_a_start_of_ours_the_end_that_our_stop_made_is_not_told() -> None:
    ours = Run(restart_count=0, started_at="", ended_at=10)
    assert told((died(11, 143),), container(restart_count=0, started_at="t5"), ours) == []
    assert told((died(11, 143), died(12)), container(restart_count=1, started_at="t6"), ours) == [
        ("crashed", 3, 1)
    ]


@pytest.mark.parametrize(
    ("engine_lost", "cause"),
    [(False, "restarted outside Trailer"), (True, "restarted with the engine")],
)
def test_a_restart_by_others_says_whose_it_was(engine_lost: bool, cause: str) -> None:
    seen = container(restart_count=0, started_at="t9")
    verdict = ends_since(
        RAN, (died(11, 143, killed=True),), seen, patient=True, engine_lost=engine_lost
    )
    assert [(end.kind, end.cause) for end in verdict.ends] == [("restarted", cause)]


def test_a_restart_that_nobody_heard_of_is_counted_once() -> None:
    seen = container(restart_count=2, started_at="t9")
    assert told((), seen) == [("restarted", None, 3)]
    verdict = ends_since(RAN, (), seen, patient=False)
    assert verdict.run is not None
    assert told((), seen, verdict.run) == []


@pytest.mark.parametrize(
    ("code", "name"), [(137, "SIGKILL"), (143, "SIGTERM"), (3, ""), (255, ""), (None, "")]
)
def test_a_code_made_of_a_signal_names_it(code: int | None, name: str) -> None:
    assert signal_of(code) == name


def end(code: int, at: str, kind: str = "crashed") -> WorkspaceEvent:
    return WorkspaceEvent(
        seq=0,
        workspace_id="w",
        event=kind,
        cause="ended by itself",
        at=at,
        last_at=at,
        exit=ContainerExit(code=code),
        last_lines=f"at {at}",
    )


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(Database(tmp_path / "agent.sqlite3"))


def counted(outbox: Outbox) -> list[tuple[str, int, str, str]]:
    items = [item for item in outbox.take(100) if isinstance(item, WorkspaceEvent)]
    return [(item.event, item.count, item.at, item.last_at) for item in items]


def test_equal_ends_that_wait_become_one_with_a_count(outbox: Outbox) -> None:
    for at in ("1", "2", "3"):
        outbox.put(end(3, at))
    outbox.put(end(4, "4"))
    assert counted(outbox) == [("crashed", 3, "1", "3"), ("crashed", 1, "4", "4")]


def test_another_row_in_between_ends_the_counting(outbox: Outbox) -> None:
    outbox.put(end(3, "1"))
    heal = WorkspaceEvent(seq=0, workspace_id="w", event="heal", cause="drift", at="2")
    outbox.put(heal)
    outbox.put(end(3, "3"))
    assert [kind for kind, *_ in counted(outbox)] == ["crashed", "heal", "crashed"]


def test_what_is_on_its_way_is_not_counted_into(outbox: Outbox) -> None:
    outbox.put(end(3, "1"))
    (sent,) = outbox.take(100)
    outbox.put(end(3, "2"))
    outbox.put(end(3, "3"))
    outbox.accept([sent.seq])
    assert counted(outbox) == [("crashed", 2, "2", "3")]


def test_an_end_on_the_wire_reads_as_it_was_written() -> None:
    item = end(137, "2026-01-31T08:00:00Z")
    assert msgspec.json.decode(msgspec.json.encode(item), type=WorkspaceEvent) == item
