"""Golden plans: what somebody did by hand, and how it is put right."""

from dataclasses import replace
from typing import Any

from agent.observed import Attachment
from agent.plan import WorkspaceFinding
from agent.protocol.state import HostState
from agent.runtime.fake import FakeRuntime
from tests.agent.bench import Bench
from tests.agent.documents import document, network, workspace


def deployed(bench: Bench, **fields: Any) -> HostState:
    desired = document(workspaces=(workspace(**fields),), networks=(network(),))
    bench.settle(desired)
    return desired


def by_hand(runtime: FakeRuntime, **fields: Any) -> str:
    container = runtime.named("trailer-web")
    assert container is not None
    runtime.containers[container.id] = replace(container, **fields)
    return container.short_id


def status(bench: Bench, desired: HostState) -> WorkspaceFinding:
    (found,) = [f for f in bench.plan(desired).findings if isinstance(f, WorkspaceFinding)]
    return found


def test_a_new_workspace_is_created_and_started(bench: Bench) -> None:
    assert bench.plan(document(workspaces=(workspace(),))).render() == (
        "1. create_container 'web' (trailer-web): no container yet\n"
        "2. start_container 'web' (#1): no container yet <- 1"
    )


def test_a_workspace_joins_all_its_networks_before_it_starts(bench: Bench) -> None:
    desired = document(
        networks=(network(), network("dmz")),
        workspaces=(workspace(network_ids=("n-lan", "n-dmz")),),
    )
    assert bench.plan(desired).render() == (
        "1. create_network 'dmz': not on the engine\n"
        "2. create_network 'lan': not on the engine\n"
        "3. create_container 'web' (trailer-web on #1): no container yet <- 1, 2\n"
        "4. connect_network 'web' (#3 to #2 as web): no container yet <- 3\n"
        "5. start_container 'web' (#3): no container yet <- 3, 4"
    )


def test_a_removed_container_is_made_again_as_a_healing(bench: Bench) -> None:
    desired = deployed(bench)
    bench.runtime.containers.clear()
    plan = bench.plan(desired)
    assert plan.render() == (
        "1. create_container 'web' (trailer-web): container was removed outside Trailer\n"
        "2. start_container 'web' (#1): container was removed outside Trailer <- 1"
    )
    assert plan.nodes[0].step.event == "heal"


def test_a_stopped_container_is_started_again(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, state="exited", exit_code=137)
    plan = bench.plan(desired)
    assert plan.render() == (
        f"1. start_container 'web' ({old}): stopped outside Trailer (exit code 137)"
    )
    assert plan.nodes[0].step.event == "heal"


def test_a_paused_container_is_unpaused(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, state="paused")
    assert bench.plan(desired).render() == (
        f"1. unpause_container 'web' ({old}): paused outside Trailer"
    )


def test_a_renamed_container_gets_its_name_back(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, name="mine-now")
    assert bench.plan(desired).render() == (
        f"1. rename_container 'web' ({old} to trailer-web): renamed outside Trailer [name]"
    )


def test_a_cut_network_is_joined_again(bench: Bench) -> None:
    desired = deployed(bench, network_ids=("n-lan",))
    old = by_hand(bench.runtime, attachments=())
    lan = next(n.id for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    assert bench.plan(desired).render() == (
        f"1. connect_network 'web' ({old} to {lan} as web): network cut outside Trailer [networks]"
    )


def test_a_network_joined_by_hand_is_left_again(bench: Bench) -> None:
    desired = deployed(bench, network_ids=("n-lan",))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    extra = Attachment(network_id="net-bridge", network_name="bridge")
    old = by_hand(bench.runtime, attachments=(*container.attachments, extra))
    assert bench.plan(desired).render() == (
        f"1. disconnect_network 'web' ({old} from net-bridge): joined outside Trailer [networks]"
    )


def test_limits_changed_by_hand_are_put_back_in_place(bench: Bench) -> None:
    desired = deployed(bench, cpus=1, memory_bytes=64 * 2**20)
    old = by_hand(bench.runtime, nano_cpus=500_000_000)
    assert bench.plan(desired).render() == (
        f"1. update_container 'web' ({old}): limits were changed outside Trailer [cpus]"
    )


def test_a_limit_that_should_not_be_there_needs_a_new_container(bench: Bench) -> None:
    desired = deployed(bench)
    by_hand(bench.runtime, memory_bytes=64 * 2**20)
    plan = bench.plan(desired)
    assert "create_container 'web' (trailer-web-next): limits were changed" in plan.render()
    told = [change for node in plan.nodes for change in node.step.changes]
    assert {(change.field, change.effect) for change in told} == {("memory_bytes", "replace")}


def test_a_created_container_is_found_and_started_never_doubled(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, state="created")
    # The agent died before it could note the container down.
    plan = bench.plan(desired, owned_ids=frozenset(), containers={}, applied={})
    assert plan.render() == f"1. start_container 'web' ({old}): created but never started"
    assert [container_id[:12] for _, container_id in plan.adopted] == [old]


def test_a_left_over_spare_container_is_removed(bench: Bench) -> None:
    desired = deployed(bench)
    main = bench.runtime.named("trailer-web")
    assert main is not None
    spare = bench.runtime.add_container(
        "trailer-web-next", labels=main.labels, attachments=main.attachments
    )
    assert bench.plan(desired).render() == (
        f"1. stop_container 'web' ({spare[:12]}): left over from an interrupted replace\n"
        f"2. remove_container 'web' ({spare[:12]}): left over from an interrupted replace <- 1"
    )


def test_a_replace_that_was_cut_short_after_the_removal_is_finished(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, name="trailer-web-next", state="created")
    assert bench.plan(desired).render() == (
        f"1. rename_container 'web' ({old} to trailer-web): finishing an interrupted replace\n"
        f"2. start_container 'web' ({old}): finishing an interrupted replace <- 1"
    )


def back(new: str, old: str, *, first: int, tried: str) -> str:
    """The steps that are taken when the new container does not come up."""
    because = "the replacement did not come up"
    return (
        f"{first}. stop_container 'web' ({new}): {because} if {tried} fails\n"
        f"{first + 1}. remove_container 'web' ({new}): {because} <- {first} if {tried} fails\n"
        f"{first + 2}. start_container 'web' ({old}): {because} <- {first + 1} if {tried} fails"
    )


def test_a_replacement_that_serves_alone_takes_over(bench: Bench) -> None:
    deployed(bench)
    desired = document(workspaces=(workspace(revision=2, env={"A": "1"}),))
    bench.settle(desired)
    new = by_hand(bench.runtime, name="trailer-web-next")
    current = bench.runtime.named("trailer-web-next")
    assert current is not None
    stale = document(workspaces=(workspace(),))
    bench.settle(stale)
    old = by_hand(bench.runtime, state="exited")
    bench.runtime.containers[current.id] = current
    assert bench.plan(desired).render() == (
        f"1. wait_healthy 'web' ({new}): finishing an interrupted replace\n"
        f"2. remove_container 'web' ({old}): finishing an interrupted replace <- 1\n"
        f"3. rename_container 'web' ({new} to trailer-web): finishing an interrupted replace [env]"
        " <- 2\n" + back(new, old, first=4, tried="1")
    )


def test_a_replacement_that_was_made_but_not_started_is_used(bench: Bench) -> None:
    deployed(bench)
    desired = document(workspaces=(workspace(revision=2, env={"A": "1"}),))
    bench.settle(desired)
    new = by_hand(bench.runtime, name="trailer-web-next", state="created")
    made = bench.runtime.named("trailer-web-next")
    assert made is not None
    bench.settle(document(workspaces=(workspace(),)))
    bench.runtime.containers[made.id] = made
    old = bench.runtime.named("trailer-web")
    assert old is not None
    because = "finishing an interrupted replace"
    assert bench.plan(desired).render() == (
        f"1. stop_container 'web' ({old.short_id}): {because}\n"
        f"2. start_container 'web' ({new}): {because} <- 1\n"
        f"3. wait_healthy 'web' ({new}): {because} <- 2\n"
        f"4. remove_container 'web' ({old.short_id}): {because} <- 3\n"
        f"5. rename_container 'web' ({new} to trailer-web): {because} [env] <- 4\n"
        + back(new, old.short_id, first=6, tried="1, 2, 3")
    )


def test_a_container_on_its_way_out_is_waited_for(bench: Bench) -> None:
    desired = deployed(bench)
    old = by_hand(bench.runtime, state="dead")
    plan = bench.plan(desired)
    assert plan.nodes == ()
    assert plan.recheck_after is not None
    container = bench.runtime.named("trailer-web")
    assert container is not None
    stuck = bench.plan(desired, stuck_ids=frozenset({container.id}))
    assert stuck.render() == f"1. remove_container 'web' ({old}): container is dead"


def test_a_crash_loop_is_an_error_with_code_and_output(bench: Bench) -> None:
    desired = deployed(bench)
    by_hand(bench.runtime, state="restarting", restart_count=4, exit_code=3, log_tail="no disk")
    found = status(bench, desired)
    assert found.status == "error"
    assert found.message == (
        "The container keeps exiting with code 3, restarted 4 times. Last output: no disk"
    )


def test_a_restarted_container_counts_as_steady_only_after_a_while(bench: Bench) -> None:
    desired = deployed(bench)
    by_hand(bench.runtime, restart_count=2, started_at="2026-11-16T11:59:55.123456789Z")
    assert status(bench, desired).status == "error"
    assert bench.plan(desired).recheck_after is not None
    by_hand(bench.runtime, started_at="2026-11-16T11:59:45.1Z")
    assert status(bench, desired).status == "running"


def test_running_means_healthy_when_there_is_a_health_check(bench: Bench) -> None:
    desired = deployed(bench)
    by_hand(bench.runtime, health="starting")
    assert status(bench, desired).status == "starting"
    by_hand(bench.runtime, health="unhealthy", health_output="connection refused")
    assert status(bench, desired).message == (
        "The health check fails. Last output: connection refused"
    )
    by_hand(bench.runtime, health="healthy")
    assert status(bench, desired).status == "running"


def test_a_missing_device_is_told_before_anything_is_touched(bench: Bench) -> None:
    desired = document(workspaces=(workspace(nested_virtualization=True),))
    plan = bench.plan(desired, has_kvm=False)
    assert plan.nodes == ()
    (found,) = [f for f in plan.findings if isinstance(f, WorkspaceFinding)]
    assert found.message == "Nested virtualisation needs /dev/kvm, which this host does not have."


def test_a_stale_spare_without_its_main_container_goes_before_the_new_one(bench: Bench) -> None:
    deployed(bench)
    old = by_hand(bench.runtime, name="trailer-web-next")
    desired = document(workspaces=(workspace(revision=2, env={"A": "1"}),), networks=(network(),))
    assert [node.render().partition(":")[0] for node in bench.plan(desired).nodes] == [
        f"1. stop_container 'web' ({old})",
        f"2. remove_container 'web' ({old})",
        "3. create_container 'web' (trailer-web)",
        "4. start_container 'web' (#3)",
    ]


def test_a_restart_policy_changed_by_hand_is_put_back_in_place(bench: Bench) -> None:
    desired = deployed(bench)
    short = by_hand(bench.runtime, restart_policy="no")
    plan = bench.plan(desired)
    assert plan.render() == (
        f"1. update_container 'web' ({short}): the restart policy was changed outside Trailer "
        "[restart_policy]"
    )
    (change,) = plan.nodes[0].step.changes
    assert (change.field, change.old, change.new) == ("restart_policy", "no", "unless-stopped")
    bench.settle(desired)
    found = bench.runtime.named("trailer-web")
    assert found is not None
    assert found.restart_policy == "unless-stopped"
