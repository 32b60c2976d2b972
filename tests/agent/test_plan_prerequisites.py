"""Golden plans of the platform's own containers: made first, replaced, healed, pruned."""

from dataclasses import replace

import msgspec

from agent.observed import ObservedNetwork
from agent.plan import LeftoversFinding, Plan, ResourceFinding
from agent.protocol.prerequisites import (
    DesiredPrerequisite,
    PrerequisiteMount,
    PrerequisiteSpec,
)
from agent.runtime.docker_requests import container_config
from tests.agent.bench import Bench
from tests.agent.documents import IMAGE_REF, document, workspace

ROUTER = DesiredPrerequisite(
    kind="router", image=IMAGE_REF, spec=PrerequisiteSpec(command=("serve",), network="edge")
)
DRIVER = DesiredPrerequisite(
    kind="nvidia-driver",
    image=IMAGE_REF,
    spec=PrerequisiteSpec(
        entrypoint=("nvidia-driver",),
        command=("init",),
        privileged=True,
        host_pid=True,
        mounts=(
            PrerequisiteMount(target="/run/nvidia", source="/run/nvidia", propagation="shared"),
            PrerequisiteMount(target="/log", source="/var/log", read_only=True),
            PrerequisiteMount(target="/data", source="data", kind="volume"),
        ),
    ),
)


def found(plan: Plan) -> list[tuple[str, str]]:
    return [
        (finding.status, finding.message)
        for finding in plan.findings
        if isinstance(finding, ResourceFinding) and finding.resource == "prerequisite"
    ]


def test_a_prerequisite_comes_before_everything_else(bench: Bench) -> None:
    plan = bench.plan(document(prerequisites=(ROUTER,), workspaces=(workspace(),)))
    assert plan.render().splitlines()[:3] == [
        "1. create_network 'router': not on the engine",
        "2. create_container 'router' (trailer.router on #1): not on the engine <- 1",
        "3. start_container 'router' (#2): not on the engine <- 2",
    ]


def test_what_is_there_and_right_is_left_alone(bench: Bench) -> None:
    desired = document(prerequisites=(DRIVER, ROUTER), workspaces=(workspace(),))
    bench.settle(desired)
    plan = bench.plan(desired)
    assert plan.nodes == ()
    assert found(plan) == [("created", ""), ("created", "")]


def test_it_is_no_leftover_nor_a_workspace(bench: Bench) -> None:
    desired = document(prerequisites=(ROUTER,))
    bench.settle(desired)
    leftovers = [f for f in bench.plan(desired).findings if isinstance(f, LeftoversFinding)]
    assert leftovers[0].leftovers == ()


def test_another_image_or_setting_replaces_it(bench: Bench) -> None:
    bench.runtime.add_image("other:1")
    bench.settle(document(prerequisites=(ROUTER,)))
    changed = msgspec.structs.replace(ROUTER, image="other:1")
    plan = bench.plan(document(prerequisites=(changed,)))
    assert [node.step.verb for node in plan.nodes] == [
        *("stop_container", "remove_container", "create_container", "start_container"),
    ]
    bench.settle(document(prerequisites=(changed,)))
    container = bench.runtime.named("trailer.router")
    assert container is not None
    assert container.image_id == bench.runtime.inspect_image("other:1").id


def test_an_agent_that_knows_more_fields_replaces_nothing(bench: Bench) -> None:
    bench.settle(document(prerequisites=(ROUTER,)))
    container = bench.runtime.named("trailer.router")
    assert container is not None
    older = '{"kind":"router","image":"busybox:1","spec":{"command":["serve"],"network":"edge"}}'
    labels = {**container.labels, "trailer.spec": older}
    bench.runtime.containers[container.id] = replace(container, labels=labels)
    assert bench.plan(document(prerequisites=(ROUTER,))).nodes == ()


def test_a_missing_image_is_fetched_while_the_old_one_goes_on(bench: Bench) -> None:
    bench.settle(document(prerequisites=(ROUTER,)))
    newer = msgspec.structs.replace(ROUTER, image="new:2")
    plan = bench.plan(document(prerequisites=(newer,)))
    assert plan.render() == "1. pull_image 'router' (new:2): its image is not on this host"
    assert found(plan) == [("pending", "Fetching image new:2.")]


def test_a_fetch_in_flight_is_neither_doubled_nor_cancelled(bench: Bench) -> None:
    newer = msgspec.structs.replace(ROUTER, image="new:2")
    plan = bench.plan(
        document(prerequisites=(newer,)),
        busy=frozenset({"prerequisite:router"}),
        running_builds={"prerequisite:router": ""},
    )
    assert plan.nodes == ()
    gone = bench.plan(document(), running_builds={"prerequisite:router": ""})
    assert [node.step.verb for node in gone.nodes] == ["cancel_build"]


def test_switched_off_it_goes_with_the_network_made_for_it(bench: Bench) -> None:
    bench.settle(document(prerequisites=(ROUTER,)))
    plan = bench.plan(document())
    assert [(n.step.verb, n.after, n.cleanup) for n in plan.nodes] == [
        ("stop_container", (), True),
        ("remove_container", (1,), True),
        ("remove_network", (2,), True),
    ]
    bench.settle(document())
    assert bench.runtime.named("trailer.router") is None


def test_a_network_that_was_there_before_stays(bench: Bench) -> None:
    bench.runtime.networks["n1"] = ObservedNetwork(id="n1", name="edge")
    bench.settle(document(prerequisites=(ROUTER,)))
    bench.settle(document())
    assert "n1" in bench.runtime.networks


def test_a_router_on_one_of_the_engines_own_networks_is_an_error_in_words(bench: Bench) -> None:
    """As from a server that took such a name once."""
    spec = PrerequisiteSpec(command=("serve",), network="bridge")
    plan = bench.plan(document(prerequisites=(msgspec.structs.replace(ROUTER, spec=spec),)))
    assert plan.nodes == ()
    assert found(plan)[0][0] == "error"
    assert found(plan)[0][1].startswith("The network bridge is the engine's own")


def test_stopped_by_hand_it_is_started_again(bench: Bench) -> None:
    desired = document(prerequisites=(ROUTER,))
    bench.settle(desired)
    container = bench.runtime.named("trailer.router")
    assert container is not None
    bench.runtime.stop_container(container.id, timeout=1)
    assert bench.plan(desired).render().endswith("not running")


def test_a_stranger_under_its_name_is_never_touched(bench: Bench) -> None:
    bench.runtime.add_container("trailer.router", labels={"trailer.prerequisite": "router"})
    plan = bench.plan(document(prerequisites=(ROUTER,)))
    assert plan.nodes == ()
    assert found(plan)[0][0] == "error"
    assert "which Trailer did not make" in found(plan)[0][1]
    assert bench.plan(document()).nodes == ()


def test_a_failure_waits_and_says_why(bench: Bench) -> None:
    plan = bench.plan(
        document(prerequisites=(ROUTER,)), held={"prerequisite:router": "Port 80 is taken."}
    )
    assert plan.nodes == ()
    assert found(plan) == [("error", "Port 80 is taken.")]


def test_a_state_that_went_back_in_time_prunes_nothing(bench: Bench) -> None:
    bench.settle(document(prerequisites=(ROUTER,)))
    assert bench.plan(document(), hold_removals="The state went back.").nodes == ()


def test_the_engine_is_asked_for_privileges_folders_and_volumes(bench: Bench) -> None:
    bench.settle(document(prerequisites=(DRIVER,)))
    container = bench.runtime.named("trailer.nvidia-driver")
    assert container is not None
    config = container_config(bench.runtime.requests[container.id], network_id="", alias="")
    host = config["HostConfig"]
    assert config["Entrypoint"] == ["nvidia-driver"]
    assert (host["Privileged"], host["PidMode"]) == (True, "host")
    assert host["Binds"] == ["/run/nvidia:/run/nvidia:rw,shared", "/var/log:/log:ro"]
    assert [mount["Source"] for mount in host["Mounts"]] == ["data"]


def test_one_that_the_engine_was_killed_over_is_made_again(bench: Bench) -> None:
    desired = document(prerequisites=(ROUTER,))
    bench.settle(desired)
    router = bench.runtime.named("trailer.router")
    assert router is not None
    bench.runtime.containers[router.id] = replace(
        router, state="created", error="id already in use"
    )
    bench.settle(desired)
    again = bench.runtime.named("trailer.router")
    assert again is not None
    assert (again.id != router.id, again.state) == (True, "running")
