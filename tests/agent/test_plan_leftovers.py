"""What an operator is shown of the host that is not in any document."""

from agent.observed import ObservedVolume
from agent.plan import LeftoversFinding
from agent.protocol import naming
from agent.protocol.state import HostState
from tests.agent.bench import Bench
from tests.agent.documents import document, tombstone, volume, workspace


def leftovers(bench: Bench, desired: HostState) -> list[tuple[str, str, str]]:
    (found,) = [f for f in bench.plan(desired).findings if isinstance(f, LeftoversFinding)]
    return [(item.resource, item.name, item.reason) for item in found.leftovers]


def test_strangers_impostors_and_the_unclaimed_are_told_apart(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(),), volumes=(volume(),)))
    assert leftovers(bench, document(workspaces=(workspace(),), volumes=(volume(),))) == []
    bench.runtime.add_container("postgres")
    bench.runtime.add_container("copycat", labels={naming.LABEL_MANAGED: "true"})
    bench.runtime.volumes["a" * 64] = ObservedVolume(name="a" * 64)
    assert leftovers(bench, document()) == [
        ("container", "copycat", "impostor"),
        ("container", "postgres", "foreign"),
        ("container", "trailer-web", "unclaimed"),
        ("volume", "trailer-data", "unclaimed"),
    ]


def test_what_is_ordered_to_go_is_no_leftover(bench: Bench) -> None:
    bench.settle(document(volumes=(volume(),)))
    order = tombstone("volume", "v-data", "trailer-data")
    assert leftovers(bench, document(tombstones=(order,))) == []
