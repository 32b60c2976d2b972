"""Replaces that were interrupted: by an agent that died, or by another wish."""

from contextlib import suppress
from typing import Any

import pytest

from agent.errors import EngineError
from agent.protocol.state import HostState
from tests.agent.bench import Bench
from tests.agent.documents import document, network, volume, workspace
from tests.agent.replace_scene import DATA, by_hand, deployed, host, named, verbs


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


def test_networks_edited_before_a_replace_is_finished_are_an_edit_and_later_drift(
    bench: Bench,
) -> None:
    deployed(bench, mounts=(DATA,))
    interrupted(bench, after="start_container")
    edited = workspace(mounts=(DATA,), env={"A": "1"}, network_ids=("n-lan",), revision=3)
    wanted = document(workspaces=(edited,), volumes=(volume(),), networks=(network(),))
    plans = [bench.cycle(wanted) for _ in range(4)]
    causes = [node.step.cause for plan in plans for node in plan.nodes if not node.rescues]
    assert "networks changed" in causes
    assert not [cause for cause in causes if "outside Trailer" in cause]
    assert plans[-1].nodes == ()
    lan = next(n.id for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    bench.runtime.disconnect_network(lan, named(bench).id)
    first = bench.plan(wanted).nodes[0].step
    assert (first.cause, first.event) == ("network cut outside Trailer", "heal")


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


def test_the_old_container_of_a_failed_replace_gets_its_name_back(bench: Bench) -> None:
    old = deployed(bench)
    desired = host(workspace())
    by_hand(bench, old.id, nano_cpus=250_000_000)
    bench.runtime.failing["start_container"] = 1
    assert "limits were changed outside Trailer" in bench.cycle(desired).render()
    by_hand(bench, old.id, name="x1")
    assert "renamed outside Trailer [name]" in bench.cycle(desired).render()
    assert (named(bench).id, named(bench).state) == (old.id, "running")
    assert bench.cycle(desired).nodes == ()
