"""Old and new container of one workspace: who runs when, and what a failed replace leaves."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from agent.errors import EngineError
from agent.observed import ObservedContainer, ObservedMount
from agent.plan import Plan, WorkspaceFinding
from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec
from agent.protocol.state import DesiredWorkspace, HostState
from tests.agent.bench import Bench
from tests.agent.documents import document, volume, workspace

HEALTH = HealthCheckSpec(test=("CMD", "true"))
DATA = MountSpec(target="/d", source="trailer-data", volume_id="v-data")
READ = MountSpec(target="/d", source="trailer-data", volume_id="v-data", read_only=True)
FOLDER = MountSpec(target="/d", kind="bind", source="/srv/d", volume_id="v-data")


def host(web: DesiredWorkspace) -> HostState:
    return document(workspaces=(web,), volumes=(volume(),))


def named(bench: Bench, name: str = "trailer-web") -> ObservedContainer:
    found = bench.runtime.named(name)
    assert found is not None, f"{name} is not there"
    return found


def deployed(bench: Bench, **fields: Any) -> ObservedContainer:
    bench.settle(host(workspace(**fields)))
    return named(bench)


def by_hand(bench: Bench, container_id: str, **fields: Any) -> None:
    known = bench.runtime.containers[container_id]
    bench.runtime._set(known, "test", **fields)


def verbs(plan: Plan) -> list[str]:
    return [node.step.verb for node in plan.nodes if not node.rescues]


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


# --- interrupted ---------------------------------------------------------------------------------


def interrupted(bench: Bench, *, after: str, **fields: Any) -> HostState:
    """A replace by an agent that died after its first call of that kind."""
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2, **fields))
    plan = bench.plan(wanted)
    results: dict[int, str] = {}
    for node in plan.nodes:
        results[node.number] = bench._ops.perform(
            node.step, lambda ref: bench._resolve(ref, results), lambda: True
        )
        if node.step.verb == after:
            return wanted
    raise AssertionError(f"no {after} in {plan.render()}")


STOPPED = ("stop_container", "start_container")


@pytest.mark.parametrize("after", ["create_container", *STOPPED, "wait_healthy"])
def test_an_interrupted_replace_is_finished_and_the_two_never_meet(
    bench: Bench, after: str
) -> None:
    old = deployed(bench, mounts=(DATA,))
    wanted = interrupted(bench, after=after)
    plan = bench.plan(wanted)
    order = verbs(plan)
    assert "create_container" not in order
    assert order[-2:] == ["remove_container", "rename_container"]
    assert named(bench).id == old.id
    bench.settle(wanted)
    assert [c.state for c in bench.runtime.containers.values()] == ["running"]
    assert bench.runtime.requests[named(bench).id].env["A"] == "1"


@pytest.mark.parametrize("after", STOPPED)
def test_the_edit_taken_back_while_the_agent_was_away_brings_the_old_one_back(
    bench: Bench, after: str
) -> None:
    old = deployed(bench, mounts=(DATA,))
    interrupted(bench, after=after)
    back = host(workspace(mounts=(DATA,), revision=3))
    assert verbs(bench.plan(back))[-1] == "start_container"
    bench.settle(back)
    assert named(bench).id == old.id
    assert [c.state for c in bench.runtime.containers.values()] == ["running"]


@pytest.mark.parametrize("after", STOPPED)
def test_without_what_a_new_container_needs_the_old_one_comes_back(
    bench: Bench, after: str
) -> None:
    old = deployed(bench, mounts=(DATA,))
    interrupted(bench, after=after)
    gone = host(workspace(mounts=(DATA,), revision=3, image_ref="vanished:1", image_id="i-gone"))
    plan = bench.cycle(gone)
    assert "create_container" not in verbs(plan)
    assert (named(bench).id, named(bench).state) == (old.id, "running")
    assert bench.runtime.named("trailer-web-next") is None


def test_a_new_container_that_runs_already_needs_nothing_further(bench: Bench) -> None:
    """Its image's name may be gone by now: that is no reason to go back to the old one."""
    deployed(bench, mounts=(DATA,))
    wanted = interrupted(bench, after="start_container")
    new = named(bench, "trailer-web-next")
    bench.runtime.images.clear()
    bench.settle(wanted)
    assert (named(bench).id, named(bench).state) == (new.id, "running")


@pytest.mark.parametrize(("state", "health"), [("running", "unhealthy"), ("exited", "")])
def test_once_the_old_container_is_gone_the_new_one_only_gets_its_name(
    bench: Bench, state: str, health: str
) -> None:
    old = deployed(bench, mounts=(DATA,))
    wanted = interrupted(bench, after="wait_healthy")
    new = named(bench, "trailer-web-next")
    del bench.runtime.containers[old.id]
    by_hand(bench, new.id, state=state, health=health)
    bench.settle(wanted)
    assert (named(bench).id, named(bench).state) == (new.id, "running")


def test_an_agent_that_died_over_a_failure_does_not_repeat_it(bench: Bench) -> None:
    old = deployed(bench, mounts=(DATA,))
    bench.runtime.failing["start_container"] = 1
    wanted = host(workspace(mounts=(DATA,), env={"A": "1"}, revision=2))
    plan = bench.plan(wanted)
    results: dict[int, str] = {}
    create, stop, start = plan.nodes[:3]
    for node in (create, stop):
        results[node.number] = bench._ops.perform(
            node.step, lambda ref: bench._resolve(ref, results), lambda: True
        )
    new = results[create.number]
    with suppress(EngineError):
        bench._ops.perform(start.step, lambda ref: bench._resolve(ref, results), lambda: True)
    assert bench.runtime.containers[new].state == "created"
    again = bench.cycle(wanted)
    assert verbs(again) == ["remove_container", "start_container"]
    assert (named(bench).id, named(bench).state) == (old.id, "running")
    assert bench.plan(wanted).nodes == ()


def test_a_stopped_workspace_keeps_no_replacement(bench: Bench) -> None:
    deployed(bench, mounts=(DATA,))
    interrupted(bench, after="start_container")
    bench.settle(host(workspace(mounts=(DATA,), revision=3, desired_state="stopped")))
    assert [c.state for c in bench.runtime.containers.values()] == ["exited"]
