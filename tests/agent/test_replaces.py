"""Old and new container of one workspace: who runs when, and what a failed replace leaves."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from agent.observed import ObservedMount
from agent.plan import Plan, WorkspaceFinding
from agent.protocol.spec import MountSpec, PortSpec
from tests.agent.bench import Bench
from tests.agent.documents import document, workspace
from tests.agent.replace_scene import (
    DATA,
    FOLDER,
    HEALTH,
    READ,
    by_hand,
    deployed,
    host,
    named,
    verbs,
)


def runs_side_by_side(plan: Plan) -> bool:
    """Whether the new container starts before the old one stops."""
    order = verbs(plan)
    return order.index("start_container") < order.index("stop_container")


def found(plan: Plan) -> WorkspaceFinding:
    (one,) = [item for item in plan.findings if isinstance(item, WorkspaceFinding)]
    return one


# --- who may run beside whom ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "shared", "beside"),
    [
        ((), (), False, True),
        ((READ,), (READ,), False, True),
        ((DATA,), (DATA,), False, False),
        ((FOLDER,), (FOLDER,), False, False),
        ((), (DATA,), False, False),
        ((DATA,), (), False, False),
        ((DATA,), (READ,), False, False),
        ((READ,), (DATA,), False, False),
        ((DATA,), (DATA,), True, True),
        ((DATA,), (FOLDER,), True, True),
    ],
)
def test_two_containers_that_can_write_to_a_volume_never_run_at_once(
    bench: Bench,
    before: tuple[MountSpec, ...],
    after: tuple[MountSpec, ...],
    shared: bool,
    beside: bool,
) -> None:
    deployed(bench, health_check=HEALTH, mounts=before)
    wanted = workspace(
        health_check=HEALTH, mounts=after, env={"A": "1"}, revision=2, shared_volumes=shared
    )
    assert runs_side_by_side(bench.plan(host(wanted))) is beside


CAUSES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "edit": lambda bench: {"env": {"A": "1"}, "revision": 2},
    "redeploy": lambda bench: {"generation": 1, "revision": 2},
    "image moved": lambda bench: {
        "image_engine_id": bench.runtime.add_image("busybox:1", image_id="sha256:moved")
    },
    "rollback to another image": lambda bench: {
        "image_engine_id": bench.runtime.add_image("busybox:0"),
        "image_ref": "busybox:0",
        "revision": 2,
    },
    "restored snapshot": lambda bench: {
        "image_engine_id": bench.runtime.add_image("trailer/snap:latest"),
        "image_ref": "trailer/snap:latest",
        "revision": 2,
    },
}


@pytest.mark.parametrize("cause", CAUSES)
def test_whatever_the_cause_a_database_is_stopped_first(bench: Bench, cause: str) -> None:
    known = bench.runtime.inspect_image("busybox:1").id
    deployed(bench, health_check=HEALTH, mounts=(DATA,), image_engine_id=known)
    change = CAUSES[cause](bench)
    plan = bench.plan(host(workspace(health_check=HEALTH, mounts=(DATA,), **change)))
    assert verbs(plan)[:4] == [
        "create_container",
        "stop_container",
        "start_container",
        "wait_healthy",
    ]
    assert not runs_side_by_side(plan)


def test_drift_of_the_limits_stops_a_database_first(bench: Bench) -> None:
    old = deployed(bench, health_check=HEALTH, mounts=(DATA,))
    by_hand(bench, old.id, memory_bytes=64 * 2**20)
    plan = bench.plan(host(workspace(health_check=HEALTH, mounts=(DATA,))))
    assert not runs_side_by_side(plan)


def test_the_running_container_is_judged_by_what_the_engine_says_of_it(bench: Bench) -> None:
    """What is wanted by now may have no volume any more while the old container still writes."""
    old = deployed(bench, health_check=HEALTH)
    by_hand(bench, old.id, mounts=(ObservedMount(target="/d", kind="bind", source="/srv/d"),))
    wanted = host(workspace(health_check=HEALTH, env={"A": "1"}, revision=2))
    assert not runs_side_by_side(bench.plan(wanted))


def test_a_volume_that_the_engine_made_for_one_container_is_no_other_ones(bench: Bench) -> None:
    """Because the image declares it: the new container gets another one."""
    old = deployed(bench, health_check=HEALTH)
    by_hand(bench, old.id, mounts=(ObservedMount(target="/var/lib/db", source="0" * 64),))
    wanted = host(workspace(health_check=HEALTH, env={"A": "1"}, revision=2))
    assert runs_side_by_side(bench.plan(wanted))


def test_both_that_run_after_an_older_agent_was_interrupted_do_not_stay(bench: Bench) -> None:
    old = deployed(bench, health_check=HEALTH, mounts=(DATA,))
    wanted = host(workspace(health_check=HEALTH, mounts=(DATA,), env={"A": "1"}, revision=2))
    bench.cycle(wanted)
    new = named(bench)
    by_hand(bench, new.id, name="trailer-web-next")
    bench.runtime.containers[old.id] = old
    plan = bench.plan(wanted)
    assert verbs(plan)[:5] == [
        *("stop_container", "remove_container", "create_container"),
        *("stop_container", "start_container"),
    ]
    first = plan.nodes[0].step
    assert getattr(first, "container").id == new.id  # noqa: B009  a union of steps
    bench.settle(wanted)
    assert [c.name for c in bench.runtime.containers.values()] == ["trailer-web"]


def test_a_workspace_named_like_the_spare_does_not_cost_the_old_container(bench: Bench) -> None:
    """`web-next` holds the name that the new container of `web` usually has."""
    both = document(workspaces=(workspace(), workspace("web-next")))
    bench.settle(both)
    edited = document(workspaces=(workspace(revision=2, env={"A": "1"}), workspace("web-next")))
    plan = bench.plan(edited)
    assert "1. create_container 'web' (trailer-w-web-next): changed: env" in plan.render()
    assert verbs(plan)[-2:] == ["remove_container", "rename_container"]
    bench.settle(edited)
    names = sorted(c.name for c in bench.runtime.containers.values())
    assert names == ["trailer-web", "trailer-web-next"]


def test_one_that_was_called_like_a_spare_is_replaced_like_any_other(bench: Bench) -> None:
    bench.settle(host(workspace("web-next", id="w-web", mounts=(DATA,))))
    old = named(bench, "trailer-web-next")
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    assert verbs(bench.plan(wanted))[:3] == [
        "create_container",
        "stop_container",
        "start_container",
    ]
    bench.runtime.failing["start_container"] = 1
    bench.cycle(wanted)
    assert old.id in bench.runtime.containers
    bench.settle(wanted)
    assert (named(bench).id, named(bench).state) == (old.id, "running")


# --- failures ------------------------------------------------------------------------------------


def test_a_replacement_that_does_not_start_gives_way_to_the_old_container(bench: Bench) -> None:
    old = deployed(bench, mounts=(DATA,))
    bench.runtime.failing["start_container"] = 1
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    bench.cycle(wanted)
    assert named(bench).id == old.id
    assert named(bench).state == "running"
    assert bench.runtime.named("trailer-web-next") is None


@pytest.mark.parametrize("health", ["unhealthy", ""])
def test_a_failed_replace_is_an_error_and_not_tried_again(bench: Bench, health: str) -> None:
    old = deployed(bench, mounts=(DATA,))
    bench.runtime.first_health = health or "healthy"
    bench.runtime.failing["start_container"] = 0 if health else 1
    fields: dict[str, Any] = {"mounts": (DATA,), "env": {"A": "1"}}
    if health:
        fields["health_check"] = HEALTH
    wanted = host(workspace(revision=2, **fields))
    bench.cycle(wanted)
    done = list(bench.runtime.mutations)
    for _ in range(3):
        plan = bench.cycle(wanted)
        assert plan.render() == "nothing to do"
        assert found(plan).status == "error"
        assert found(plan).container_id == old.id
        assert ("unhealthy" if health else "made to fail") in found(plan).message
    assert bench.runtime.mutations == done
    bench.runtime.first_health = "healthy"
    bench.settle(host(workspace(revision=3, **fields)))
    assert named(bench).id != old.id
    assert bench.journal.failed_replace("w-web") is None


def test_an_image_that_moves_on_is_tried_although_the_one_before_failed(bench: Bench) -> None:
    known = bench.runtime.inspect_image("busybox:1").id
    old = deployed(bench, mounts=(DATA,), image_engine_id=known)
    bad = bench.runtime.add_image("busybox:1", image_id="sha256:bad")
    bench.runtime.failing["start_container"] = 1
    bench.cycle(host(workspace(mounts=(DATA,), image_engine_id=bad)))
    assert bench.plan(host(workspace(mounts=(DATA,), image_engine_id=bad))).nodes == ()
    good = bench.runtime.add_image("busybox:1", image_id="sha256:good")
    bench.settle(host(workspace(mounts=(DATA,), image_engine_id=good)))
    assert named(bench).id != old.id


def test_the_last_output_of_the_new_container_is_part_of_the_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(bench, mounts=(DATA,))
    start = bench.runtime.start_container

    def ends_at_once(container_id: str) -> None:
        start(container_id)
        if bench.runtime.containers[container_id].name == "trailer-web-next":
            by_hand(bench, container_id, state="exited", exit_code=7)
            bench.runtime.tails[container_id] = "no such table"

    monkeypatch.setattr(bench.runtime, "start_container", ends_at_once)
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    bench.cycle(wanted)
    assert found(bench.cycle(wanted)).message == (
        "The new container ended with code 7. Trailer goes back to the old container and tries "
        "again after the next change. Last output: no such table"
    )
    assert named(bench).state == "running"


def test_where_the_old_container_cannot_run_either_the_new_one_is_tried_again(
    bench: Bench,
) -> None:
    """There is no outage to avoid, and what was in the way may go by itself."""
    old = deployed(bench)
    wanted = host(workspace(ports=(PortSpec(container_port=80, host_port=8080),), revision=2))
    by_hand(bench, old.id, state="created", error="port is already allocated")
    bench.runtime.failing["start_container"] = 1
    bench.cycle(wanted)
    assert named(bench).id == old.id
    bench.settle(wanted)
    assert named(bench).id != old.id


def test_an_engine_that_goes_away_says_nothing_about_the_replacement(bench: Bench) -> None:
    deployed(bench, mounts=(DATA,))
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    bench.runtime.deadly.add("start_container")
    bench.cycle(wanted)
    bench.runtime.away = False
    assert bench.journal.failed_replace("w-web") is None
    bench.settle(wanted)
    assert [c.state for c in bench.runtime.containers.values()] == ["running"]
    assert bench.runtime.requests[named(bench).id].env["A"] == "1"


def test_an_engine_that_goes_away_over_each_try_ends_the_tries(bench: Bench) -> None:
    old = deployed(bench, mounts=(DATA,))
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    for _ in range(3):
        assert bench.journal.failed_replace("w-web") is None
        bench.runtime.deadly.add("start_container")
        bench.cycle(wanted)
        bench.runtime.away = False
        bench.runtime.deadly.clear()
    failed = bench.journal.failed_replace("w-web")
    assert failed is not None
    assert "cannot be reached" in failed.message
    bench.settle(wanted)
    assert (named(bench).id, named(bench).state) == (old.id, "running")


def test_the_old_container_is_looked_after_while_the_failure_stands(bench: Bench) -> None:
    old = deployed(bench, mounts=(DATA,))
    bench.runtime.failing["start_container"] = 1
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    bench.cycle(wanted)
    by_hand(bench, old.id, name="x1", state="exited", memory_bytes=64 * 2**20)
    plan = bench.cycle(wanted)
    assert verbs(plan) == ["rename_container", "start_container"]
    assert found(plan).status == "error"
    assert (named(bench).id, named(bench).state) == (old.id, "running")
    assert bench.plan(wanted).nodes == ()


def test_a_fault_of_the_agent_itself_is_not_repeated_either(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(bench, mounts=(DATA,))
    start = bench.runtime.start_container

    def breaks(container_id: str) -> None:
        if bench.runtime.containers[container_id].name == "trailer-web-next":
            raise RuntimeError("a bug")
        start(container_id)

    monkeypatch.setattr(bench.runtime, "start_container", breaks)
    with suppress(RuntimeError):
        bench.cycle(host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2)))
    failed = bench.journal.failed_replace("w-web")
    assert failed is not None
    assert failed.message == "Internal error: a bug"
