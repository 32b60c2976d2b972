"""The agent's own judgement of chosen addresses: when a network is made, and never again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.observed import ObservedNetwork
from agent.plan import Plan, ResourceFinding, WorkspaceFinding
from agent.protocol.session import AddressRange
from tests.agent.documents import document, network, tombstone, workspace
from tests.hostile_networks import ACCEPTED, REFUSED, TAKEN, named

if TYPE_CHECKING:
    from agent.protocol.state import HostState
    from tests.agent.bench import Bench

OF_HOST = tuple(one for one in TAKEN if not one.network)
LAN = AddressRange(cidr="192.168.1.0/24", interface="eth0", direct=True)


def busy(bench: Bench) -> Bench:
    """Its engine has the networks of the table."""
    for one in TAKEN:
        if one.network:
            made = ObservedNetwork(
                id=f"net-{one.network}",
                name=one.network,
                subnets=(one.cidr,),
                interface=one.interface,
            )
            bench.runtime.networks[made.id] = made
    return bench


def found(plan: Plan, name: str = "lan") -> ResourceFinding:
    return next(
        one
        for one in plan.findings
        if isinstance(one, ResourceFinding) and one.object_id == f"n-{name}"
    )


def status_of(plan: Plan, name: str) -> WorkspaceFinding:
    return next(
        one
        for one in plan.findings
        if isinstance(one, WorkspaceFinding) and one.workspace_id == f"w-{name}"
    )


def wanted(**fields: Any) -> HostState:
    return document(networks=(network(**fields),))


def made(bench: Bench) -> list[str]:
    return [one.name for one in bench.runtime.networks.values() if one.name.startswith("trailer-")]


@pytest.mark.parametrize(
    ("fields", "word"),
    [(fields, word) for fields, word, _ in REFUSED],
    ids=[named(fields) for fields, _, _ in REFUSED],
)
def test_a_hostile_network_is_refused_by_the_agent_as_by_the_server(
    bench: Bench, fields: dict[str, str], word: str
) -> None:
    plan = busy(bench).cycle(wanted(**fields), host_ranges=OF_HOST)
    assert found(plan).status == "error"
    assert word in found(plan).message
    assert made(bench) == []


@pytest.mark.parametrize("fields", ACCEPTED, ids=named)
def test_an_honest_network_is_made(bench: Bench, fields: dict[str, str]) -> None:
    busy(bench).cycle(wanted(**fields), host_ranges=OF_HOST)
    assert made(bench) == ["trailer-lan"]


def test_a_workspace_that_needs_a_refused_network_says_so_and_others_go_on(bench: Bench) -> None:
    desired = document(
        networks=(network("bad", subnet="192.168.1.0/24"), network("good")),
        workspaces=(
            workspace("web", network_ids=("n-bad",)),
            workspace("db", network_ids=("n-good",)),
        ),
    )
    bench.cycle(desired, host_ranges=(LAN,))
    plan = bench.cycle(desired, host_ranges=(LAN,))
    assert status_of(plan, "web").status == "error"
    assert "Network bad is not ready: 192.168.1.0/24 overlaps" in status_of(plan, "web").message
    assert "by its interface eth0" in status_of(plan, "web").message
    assert status_of(plan, "db").status == "running"


def test_a_network_that_exists_is_not_judged_again(bench: Bench) -> None:
    desired = wanted(subnet="10.7.0.0/24")
    bench.cycle(desired)
    (ours,) = (one for one in bench.runtime.networks.values() if one.name == "trailer-lan")
    later = (
        AddressRange(cidr="10.7.0.0/16", interface="tun0"),
        AddressRange(cidr="10.7.0.0/24", interface=f"br-{ours.id[:12]}", direct=True),
    )
    plan = bench.cycle(desired, host_ranges=later, ranges_unseen="Nobody can tell.")
    assert (found(plan).status, plan.nodes) == ("created", ())


def test_a_network_that_is_made_again_is_judged_without_its_own_bridge(bench: Bench) -> None:
    bench.cycle(wanted(subnet="10.7.0.0/24"))
    (id_,) = (key for key, one in bench.runtime.networks.items() if one.name == "trailer-lan")
    seen = bench.runtime.networks[id_]
    bench.runtime.networks[id_] = ObservedNetwork(
        id=id_, name=seen.name, labels=seen.labels, subnets=seen.subnets, interface="br-own"
    )
    own = AddressRange(cidr="10.7.0.0/24", interface="br-own", direct=True)
    wider = wanted(subnet="10.7.0.0/16")
    behind = AddressRange(cidr="10.7.9.0/24", interface="br-own")
    refused = bench.plan(wider, host_ranges=(own, behind))
    assert "10.7.9.0/24" in found(refused).message
    bench.cycle(wider, host_ranges=(own,))
    assert [bench.runtime.networks[key].subnets for key in bench.runtime.networks][1:] == [
        ("10.7.0.0/16",)
    ]


def test_the_label_that_networks_are_compared_by_holds_what_it_always_held(bench: Bench) -> None:
    """One field more, and every network of every host would be made again."""
    bench.cycle(wanted(subnet="10.7.0.0/24"))
    (ours,) = (one for one in bench.runtime.networks.values() if one.name == "trailer-lan")
    assert ours.labels["trailer.spec"] == (
        '{"driver":"bridge","gateway":"","internal":false,"ip_range":"","parent_interface":"",'
        '"subnet":"10.7.0.0/24"}'
    )


def test_what_the_engine_chooses_is_not_judged(bench: Bench) -> None:
    bench.cycle(wanted(), host_ranges=(LAN,), ranges_unseen="Nobody can tell.")
    assert made(bench) == ["trailer-lan"]


def test_an_agent_that_does_not_see_its_engines_machine_says_so(bench: Bench) -> None:
    plan = bench.cycle(wanted(subnet="10.7.0.0/24"), ranges_unseen="It sees nothing.")
    assert found(plan).status == "error"
    assert found(plan).message.startswith("It sees nothing. So nobody can tell")
    assert made(bench) == []


def test_of_two_that_overlap_in_one_document_one_is_made(bench: Bench) -> None:
    first, second = network("a", subnet="10.7.0.0/16"), network("b", subnet="10.7.3.0/24")
    desired = document(networks=(second, first))
    plan = bench.cycle(desired)
    assert made(bench) == ["trailer-a"]
    assert "the network that Trailer made earlier" in found(plan, "b").message
    assert "trailer-a" not in found(plan, "b").message


def test_a_network_in_the_place_of_a_deleted_one_waits_until_that_has_gone(bench: Bench) -> None:
    bench.cycle(document(networks=(network("old", subnet="10.7.0.0/24"),)))
    desired = document(
        networks=(network("new", subnet="10.7.0.0/24"),),
        tombstones=(tombstone("network", "n-old", "trailer-old"),),
    )
    plan = bench.cycle(desired)
    assert (found(plan, "new").status, plan.recheck_after) == ("pending", 2.0)
    assert made(bench) == []
    bench.cycle(desired)
    assert made(bench) == ["trailer-new"]


def test_another_hosts_networks_on_the_same_engine_are_in_the_way_too(bench: Bench) -> None:
    """Its label is not signed for this host, so it can't pass for the network's own."""
    strange = ObservedNetwork(
        id="net-9",
        name="trailer-theirs",
        labels={"trailer.network": "n-lan"},
        subnets=("10.7.0.0/24",),
    )
    bench.runtime.networks[strange.id] = strange
    assert "trailer-theirs" in found(bench.cycle(wanted(subnet="10.7.0.0/16"))).message
