"""The walk over a plan: parallel, contained, fenced; and what each object's end says."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.apply.executor import Executor, Watcher
from agent.apply.ops import Ops
from agent.engine_requests import ContainerRequest, NetworkRequest
from agent.errors import AgentError
from agent.plan import Plan, PlanBuilder
from agent.runtime.fake import FakeRuntime
from agent.steps import (
    CreateContainer,
    CreateNetwork,
    Ref,
    RemoveContainer,
    StartContainer,
    Step,
    WaitHealthy,
)
from agent.store.database import Database
from agent.store.journal import Journal
from tests.agent.bench import NoWork
from tests.agent.documents import IMAGE_REF


class Ears(Watcher):
    def __init__(self) -> None:
        self.done: list[str] = []
        self.ends: dict[str, AgentError | None] = {}
        self.containers: dict[str, str] = {}
        self.newest = True
        self.wanted: set[str] = set()

    def step_succeeded(self, step: Step, engine_id: str) -> None:
        self.done.append(f"{step.verb} {step.name}")

    def object_ended(self, key: str, container_id: str, failure: AgentError | None) -> None:
        self.ends[key] = failure
        self.containers[key] = container_id

    def may_clean(self) -> bool:
        return self.newest

    def is_wanted(self, key: str) -> bool:
        return key in self.wanted


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add_image(IMAGE_REF)
    return runtime


@pytest.fixture
def executor(runtime: FakeRuntime, tmp_path: Path) -> Iterator[Executor]:
    journal = Journal(Database(tmp_path / "agent.sqlite3"))
    executor = Executor(Ops(runtime, journal, NoWork(runtime)))
    yield executor
    executor.shutdown()


def create(name: str, image: str = IMAGE_REF, network: Ref | None = None) -> CreateContainer:
    request = ContainerRequest(name=f"trailer-{name}", image=image, hostname=name)
    return CreateContainer(
        key=f"workspace:{name}", name=name, cause="test", request=request, network=network
    )


def start(name: str, node: int) -> StartContainer:
    return StartContainer(
        key=f"workspace:{name}", name=name, cause="test", container=Ref(node=node)
    )


def run(executor: Executor, plan: Plan, ears: Ears) -> Ears:
    assert executor.submit(plan, ears).done.wait(10)
    return ears


def test_one_broken_workspace_never_stops_the_others(
    executor: Executor, runtime: FakeRuntime
) -> None:
    plan = PlanBuilder()
    for name in ("a", "broken", "c"):
        node = plan.add(create(name, image="missing:1" if name == "broken" else IMAGE_REF))
        plan.add(start(name, node), after=(node,))
    ears = run(executor, plan.build(), Ears())
    assert {c.name for c in runtime.containers.values()} == {"trailer-a", "trailer-c"}
    assert ears.ends["workspace:a"] is None
    assert ears.containers["workspace:a"] == runtime.named("trailer-a").id  # type: ignore[union-attr]
    assert "No such image" in str(ears.ends["workspace:broken"])


def test_what_waited_for_a_failed_step_says_which_one(
    executor: Executor, runtime: FakeRuntime
) -> None:
    runtime.failing["create_network"] = 1
    plan = PlanBuilder()
    step = CreateNetwork(
        key="network:n", name="lan", cause="test", request=NetworkRequest(name="trailer-lan")
    )
    lan = plan.add(step)
    web = plan.add(create("web", network=Ref(node=lan)), after=(lan,))
    plan.add(start("web", web), after=(web,))
    ears = run(executor, plan.build(), Ears())
    assert runtime.containers == {}
    assert str(ears.ends["workspace:web"]) == "lan: create_network was made to fail"


def test_a_rescue_runs_only_when_something_failed(
    executor: Executor, runtime: FakeRuntime
) -> None:
    def plan() -> Plan:
        builder = PlanBuilder()
        made = builder.add(create("web"))
        started = builder.add(start("web", made), after=(made,))
        undo = RemoveContainer(
            key="workspace:web", name="web", cause="undo", container=Ref(node=made)
        )
        builder.add(undo, rescues=(made, started))
        return builder.build()

    runtime.failing["start_container"] = 1
    ears = run(executor, plan(), Ears())
    assert runtime.containers == {}
    assert str(ears.ends["workspace:web"]) == "start_container was made to fail"
    ears = run(executor, plan(), Ears())
    assert ears.ends["workspace:web"] is None
    assert runtime.named("trailer-web") is not None


def test_a_rescue_of_something_never_made_does_nothing(
    executor: Executor, runtime: FakeRuntime
) -> None:
    builder = PlanBuilder()
    made = builder.add(create("web", image="missing:1"))
    undo = RemoveContainer(key="workspace:web", name="web", cause="u", container=Ref(node=made))
    builder.add(undo, rescues=(made,))
    run(executor, builder.build(), Ears())
    assert "remove_container" not in runtime.mutations


def test_rescues_wait_for_each_other(executor: Executor, runtime: FakeRuntime) -> None:
    """The old container starts only once the new one is gone."""
    old = runtime.add_container("trailer-old", state="exited")
    runtime.failing["start_container"] = 1
    builder = PlanBuilder()
    made = builder.add(create("web"))
    started = builder.add(start("web", made), after=(made,))
    key: dict[str, Any] = {"key": "workspace:web", "name": "web", "cause": "undo"}
    gone = builder.add(RemoveContainer(container=Ref(node=made), **key), rescues=(started,))
    back = StartContainer(container=Ref(id=old), **key)
    builder.add(back, after=(gone,), rescues=(started,))
    ears = run(executor, builder.build(), Ears())
    assert ears.done == ["create_container web", "remove_container web", "start_container web"]
    runtime.failing.update(start_container=1, remove_container=1)
    assert "start_container web" not in run(executor, builder.build(), Ears()).done


def test_nothing_is_rescued_where_something_newer_is_wanted(
    executor: Executor, runtime: FakeRuntime
) -> None:
    """The next plan starts from what is there."""

    class Elsewhere(Ears):
        def is_current(self, key: str) -> bool:
            return False

    made = runtime.add_container("trailer-web-next")
    builder = PlanBuilder()
    key: dict[str, Any] = {"key": "workspace:web", "name": "web", "cause": "test"}
    key["container"] = Ref(id=made)
    waited = builder.add(WaitHealthy(timeout=60.0, **key))
    builder.add(RemoveContainer(**key), rescues=(waited,))
    ears = run(executor, builder.build(), Elsewhere())
    assert runtime.named("trailer-web-next") is not None
    assert ears.ends == {}


def test_an_agent_that_stops_waits_for_no_container(
    executor: Executor, runtime: FakeRuntime
) -> None:
    made = runtime.add_container("trailer-web-next")
    step = WaitHealthy(
        key="workspace:web", name="web", cause="test", container=Ref(id=made), timeout=3600.0
    )
    builder = PlanBuilder()
    builder.add(step)
    execution = executor.submit(builder.build(), Ears())
    executor.stopping.set()
    assert execution.done.wait(10)


def removal(runtime: FakeRuntime) -> Plan:
    container_id = runtime.add_container("trailer-old")
    plan = PlanBuilder()
    plan.cleanup = "done"
    step = RemoveContainer(
        key="workspace:old", name="old", cause="gone", container=Ref(id=container_id)
    )
    plan.add(step, cleanup=True)
    return plan.build()


def test_an_overtaken_cycle_defers_its_cleanup(executor: Executor, runtime: FakeRuntime) -> None:
    ears = Ears()
    ears.newest = False
    execution = executor.submit(removal(runtime), ears)
    assert execution.done.wait(10)
    assert execution.cleanup == "deferred"
    assert runtime.named("trailer-old") is not None
    assert ears.ends == {}


def test_cleanup_spares_what_is_wanted_again(executor: Executor, runtime: FakeRuntime) -> None:
    ears = Ears()
    ears.wanted = {"workspace:old"}
    run(executor, removal(runtime), ears)
    assert runtime.named("trailer-old") is not None


def test_cleanup_comes_after_everything_else(executor: Executor, runtime: FakeRuntime) -> None:
    container_id = runtime.add_container("trailer-old")
    plan = PlanBuilder()
    step = RemoveContainer(
        key="workspace:old", name="old", cause="gone", container=Ref(id=container_id)
    )
    plan.add(step, cleanup=True)
    plan.add(create("web"))
    ears = run(executor, plan.build(), Ears())
    assert ears.done == ["create_container web", "remove_container old"]


def test_objects_are_busy_until_their_end_was_told(
    executor: Executor, runtime: FakeRuntime
) -> None:
    seen: list[frozenset[str]] = []

    class Nosy(Ears):
        def object_ended(self, key: str, container_id: str, failure: AgentError | None) -> None:
            seen.append(executor.busy_keys())

    plan = PlanBuilder()
    plan.add(create("web"))
    run(executor, plan.build(), Nosy())
    assert seen == [frozenset({"workspace:web"})]
    assert executor.busy_keys() == frozenset()
    assert executor.is_idle()


def test_a_stopping_agent_abandons_what_has_not_begun(
    executor: Executor, runtime: FakeRuntime
) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Slow(Ears):
        def step_began(self, step: Step) -> None:
            began.set()
            go_on.wait(10)

    plan = PlanBuilder()
    node = plan.add(create("web"))
    plan.add(start("web", node), after=(node,))
    ears = Slow()
    execution = executor.submit(plan.build(), ears)
    assert began.wait(10)
    executor.stopping.set()
    go_on.set()
    assert execution.done.wait(10)
    web = runtime.named("trailer-web")
    assert web is not None
    assert web.state == "created"
    assert ears.ends == {}


def test_a_bug_in_a_step_fails_that_step_only(executor: Executor, runtime: FakeRuntime) -> None:
    class Buggy(Ears):
        def step_began(self, step: Step) -> None:
            if step.name == "a":
                raise ZeroDivisionError

    plan = PlanBuilder()
    plan.add(create("a"))
    plan.add(create("b"))
    ears = run(executor, plan.build(), Buggy())
    assert str(ears.ends["workspace:a"]).startswith("Internal error")
    assert ears.ends["workspace:b"] is None
