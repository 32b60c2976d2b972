"""GPUs in the plan: a lost card is told while its container runs on, and none is made without."""

import msgspec

from agent.metrics.gpu_shelf import GpuShelf
from agent.plan import Plan, WorkspaceFinding
from agent.protocol.session import Gpu
from agent.protocol.spec import GpuSpec
from tests.agent.bench import Bench
from tests.agent.documents import document, workspace
from tests.agent.test_plan_drift import status

WANTED = document(workspaces=(workspace(gpus=GpuSpec(device_ids=("GPU-a",))),))
BOTH = frozenset({"GPU-a", "0", "GPU-b", "1"})


def told(plan: Plan) -> WorkspaceFinding:
    (found,) = [f for f in plan.findings if isinstance(f, WorkspaceFinding)]
    return found


def test_a_card_lost_under_a_running_container_is_a_health_problem_and_restarts_nothing(
    bench: Bench,
) -> None:
    bench.settle(WANTED)
    plan = bench.plan(WANTED, gpus=frozenset({"GPU-b", "0"}))
    found = told(plan)
    assert not plan.nodes
    assert (found.status, found.health) == ("error", "unhealthy")
    assert "GPU GPU-a is lost" in found.message
    back = told(bench.plan(WANTED, gpus=BOTH))
    assert (back.status, back.message) == ("running", "")


def test_while_nobody_can_tell_no_card_counts_as_lost(bench: Bench) -> None:
    bench.settle(WANTED)
    assert status(bench, WANTED).status == "running"


def test_no_container_is_made_for_a_card_that_is_not_there(bench: Bench) -> None:
    plan = bench.plan(WANTED, gpus=frozenset())
    assert not plan.nodes
    found = told(plan)
    assert found.status == "error"
    assert "no GPU GPU-a" in found.message


def test_what_the_server_blocks_is_not_started_and_what_runs_is_left_alone(bench: Bench) -> None:
    (wanted,) = WANTED.workspaces
    blocked = msgspec.structs.replace(wanted, blocked="It waits for a GPU.")
    waiting = document(workspaces=(blocked,))
    assert not bench.plan(waiting).nodes
    assert status(bench, waiting).message == "It waits for a GPU."
    bench.settle(WANTED)
    assert not bench.plan(waiting).nodes


def test_cards_that_come_or_go_are_news_once() -> None:
    shelf = GpuShelf()
    one, two = Gpu(id="GPU-a", name="x"), Gpu(id="GPU-b", name="x", index=1)
    assert shelf.present() is None
    assert not shelf.saw((one, two))
    assert not shelf.saw(None)
    assert shelf.present() == BOTH
    assert shelf.saw((one,))
    assert not shelf.saw((one,))
