"""Containers that an engine was killed over while it started them: made again, never retried."""

import pytest

from agent.diff.never_started import is_stale_start
from agent.errors import Conflict, EngineError
from tests.agent.bench import Bench
from tests.agent.documents import document, workspace
from tests.agent.test_plan_drift import by_hand, deployed

REFUSAL = "id already in use"


@pytest.mark.parametrize(
    ("message", "is_stale"),
    [
        ("id already in use", True),
        ("task 4f0c: already exists: unknown", True),
        ("failed to create task for container: task already exists", True),
        ("OCI runtime create failed: container with id exists: 4f0c: unknown", True),
        ("runc create failed: container with given ID already exists", True),
        ("Bind for 0.0.0.0:80 failed: port is already allocated", False),
        ('Conflict. The container name "/trailer-web" is already in use by container 4f0c', False),
        ("network trailer-lan not found", False),
    ],
)
def test_a_start_refused_for_remains_is_told_from_other_refusals(
    message: str, is_stale: bool
) -> None:
    assert is_stale_start(message) is is_stale


def test_one_that_never_ran_and_never_can_is_made_again(bench: Bench) -> None:
    desired = deployed(bench)
    short = by_hand(bench.runtime, state="created", error=REFUSAL, started_at="")
    assert bench.plan(desired).render() == (
        f"1. remove_container 'web' ({short}): "
        "the engine was interrupted while it started the container\n"
        "2. create_container 'web' (trailer-web): "
        "the engine was interrupted while it started the container <- 1\n"
        "3. start_container 'web' (#2): "
        "the engine was interrupted while it started the container <- 2"
    )
    bench.settle(desired)
    found = bench.runtime.named("trailer-web")
    assert found is not None
    assert found.state == "running"


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "created", "error": "port is already allocated", "started_at": ""},
        {"state": "exited", "error": REFUSAL, "started_at": "2026-03-01T12:00:00Z"},
        {"state": "created", "error": "", "started_at": ""},
    ],
)
def test_one_that_ran_or_that_may_still_start_is_started(
    bench: Bench, fields: dict[str, str]
) -> None:
    desired = deployed(bench)
    by_hand(bench.runtime, **fields)
    (node,) = bench.plan(desired).nodes
    assert node.step.verb == "start_container"


class Remains:
    """An engine that keeps the task of every container it was killed over."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.struck: set[str] = set()
        self._start = bench.runtime.start_container
        self._bench = bench
        monkeypatch.setattr(bench.runtime, "start_container", self.start)

    def start(self, container_id: str) -> None:
        if container_id in self.struck:
            container = self._bench.runtime.containers[container_id]
            if container.state == "created":
                self._bench.runtime._set(container, "die", state="created", error=REFUSAL)
            raise Conflict(REFUSAL)
        self._start(container_id)


def test_a_replace_over_which_the_engine_was_killed_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(bench)
    wanted = document(workspaces=(workspace(env={"A": "2"}, revision=2),))
    remains = Remains(bench, monkeypatch)
    real = bench.runtime.create_container

    def create(*arguments: object, **named: object) -> str:
        made = real(*arguments, **named)  # type: ignore[arg-type]
        if not remains.struck:
            remains.struck.add(made)
        return made

    monkeypatch.setattr(bench.runtime, "create_container", create)
    bench.settle(wanted)
    assert len(remains.struck) == 1
    (container,) = bench.runtime.containers.values()
    assert (container.name, container.state) == ("trailer-web", "running")
    assert container.id not in remains.struck
    assert bench.runtime.requests[container.id].env["A"] == "2"


def test_the_spare_of_an_interrupted_replace_that_can_never_start_is_not_gone_on_with(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(bench)
    wanted = document(workspaces=(workspace(env={"A": "2"}, revision=2),))
    monkeypatch.setattr(
        bench.runtime, "start_container", lambda _: (_ for _ in ()).throw(EngineError("away"))
    )
    bench.cycle(wanted)
    monkeypatch.undo()
    spare = next((c for c in bench.runtime.containers.values() if c.name.endswith("-next")), None)
    if spare is not None:
        bench.runtime._set(spare, "die", state="created", error=REFUSAL)
    bench.settle(wanted)
    (container,) = bench.runtime.containers.values()
    assert (container.name, container.state) == ("trailer-web", "running")
