"""A workspace that may get no container: what runs goes on, with the sentence beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.diff.workspaces import STUCK_AFTER
from agent.plan import Plan, WorkspaceFinding
from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec
from agent.steps import (
    CreateContainer,
    RemoveContainer,
    StartContainer,
    StopContainer,
)
from tests.agent.documents import document, workspace

if TYPE_CHECKING:
    from agent.protocol.state import DesiredWorkspace, HostState
    from tests.agent.bench import Bench

WHY = "mia may not use the volume data any more."
MADE_OR_STARTED = (CreateContainer, StartContainer)


def wanted(**fields: Any) -> DesiredWorkspace:
    return workspace(**fields)


def only(row: DesiredWorkspace, *, blocked: str = "") -> HostState:
    return document(workspaces=(msgspec.structs.replace(row, blocked=blocked),))


def told(plan: Plan) -> WorkspaceFinding:
    (found,) = [one for one in plan.findings if isinstance(one, WorkspaceFinding)]
    return found


def container_of(bench: Bench, name: str = "trailer-web") -> str:
    return next(one.id for one in bench.runtime.containers.values() if one.name == name)


def test_a_running_container_stays_running_with_the_sentence_beside_it(bench: Bench) -> None:
    bench.settle(only(wanted()))
    plan = bench.plan(only(wanted(), blocked=WHY))
    assert not plan.nodes
    assert (told(plan).status, told(plan).message) == ("running", WHY)


def change(bench: Bench, **fields: Any) -> None:
    known = bench.runtime.containers[container_of(bench)]
    bench.runtime.containers[known.id] = replace(known, **fields)


@pytest.mark.parametrize(
    "edited",
    [
        {"command": ("other",)},
        {"env": {"A": "b"}},
        {"mounts": (MountSpec(target="/d", kind="bind", source="/srv", volume_id="v"),)},
        {"ports": (PortSpec(container_port=80),)},
        {"image_engine_id": "sha256:new"},
        {"generation": 2},
        {"name": "renamed"},
    ],
)
def test_no_change_replaces_it(bench: Bench, edited: dict[str, object]) -> None:
    bench.settle(only(wanted(id="w")))
    row = wanted(id="w", revision=2, **edited)
    assert not bench.plan(only(row, blocked=WHY)).nodes
    assert told(bench.plan(only(row, blocked=WHY))).status == "running"


def test_what_was_removed_by_hand_is_not_made_again(bench: Bench) -> None:
    bench.settle(only(wanted()))
    bench.runtime.remove_container(container_of(bench), with_volumes=False)
    plan = bench.plan(only(wanted(), blocked=WHY))
    assert not plan.nodes
    assert (told(plan).status, told(plan).message) == ("error", WHY)
    again = bench.plan(only(wanted()))
    assert any(isinstance(node.step, CreateContainer) for node in again.nodes)


def test_what_is_down_stays_down_until_it_is_allowed_again(bench: Bench) -> None:
    bench.settle(only(wanted()))
    bench.runtime.stop_container(container_of(bench), timeout=1.0)
    plan = bench.plan(only(wanted(), blocked=WHY))
    assert not plan.nodes
    assert (told(plan).status, told(plan).message) == ("error", WHY)
    assert any(isinstance(node.step, StartContainer) for node in bench.plan(only(wanted())).nodes)


def test_stopping_it_works(bench: Bench) -> None:
    bench.settle(only(wanted()))
    stopped = only(wanted(desired_state="stopped", revision=2), blocked=WHY)
    assert [type(node.step) for node in bench.plan(stopped).nodes] == [StopContainer]
    bench.settle(stopped)
    assert told(bench.plan(stopped)).status == "stopped"


def test_a_replace_under_way_is_not_finished(bench: Bench) -> None:
    """The new container that waits beside the old one goes; the old one runs on."""
    check = HealthCheckSpec(test=("CMD", "true"))
    bench.settle(only(wanted(health_check=check)))
    row = wanted(health_check=check, revision=2, command=("new",))
    plan = bench.plan(only(row))
    spare = next(node.step for node in plan.nodes if isinstance(node.step, CreateContainer))
    bench.perform(spare)
    assert len(bench.runtime.containers) == 2
    blocked = only(row, blocked=WHY)
    steps = [node.step for node in bench.plan(blocked).nodes]
    assert not [step for step in steps if isinstance(step, MADE_OR_STARTED)]
    assert [step for step in steps if isinstance(step, RemoveContainer)]
    bench.settle(blocked)
    assert [one.name for one in bench.runtime.containers.values()] == ["trailer-web"]
    assert told(bench.plan(blocked)).status == "running"


def test_its_own_trouble_is_told_before_the_sentence(bench: Bench) -> None:
    bench.settle(only(wanted()))
    change(bench, health="unhealthy")
    found = told(bench.plan(only(wanted(), blocked=WHY)))
    assert found.status == "error"
    assert found.message == f"The health check fails. {WHY}"


def test_one_that_goes_away_just_now_is_waited_for(bench: Bench) -> None:
    bench.settle(only(wanted()))
    change(bench, state="removing")
    plan = bench.plan(only(wanted(), blocked=WHY))
    assert not plan.nodes
    assert plan.recheck_after == STUCK_AFTER
