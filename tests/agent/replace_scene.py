"""One workspace on the bench, before and after an edit that replaces its container."""

from typing import Any

from agent.observed import ObservedContainer
from agent.plan import Plan
from agent.protocol.spec import HealthCheckSpec, MountSpec
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
