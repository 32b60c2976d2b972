"""What the agent tells of its machine's addresses, and what it says when it sees none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.diff.addresses import taken_addresses, worth_telling
from agent.diff.view import View
from agent.errors import EngineUnavailable
from agent.host_network.addresses import HostAddresses
from agent.observed import ObservedNetwork, ObservedState
from agent.protocol.session import AddressRange
from agent.runtime import docker_parse as parse
from agent.runtime.docker_place import shows_bridge
from tests.agent.documents import NOW, document, knowledge, network
from tests.agent.running import Running
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent.runtime.fake import FakeRuntime
    from tests.agent.fake_server import FakeServer

LAN = AddressRange(cidr="192.168.1.0/24", interface="eth0", direct=True)
NEW_ID = "5f0c7c0a1b2d" + "0" * 52


def ranges(*found: AddressRange, networks: tuple[ObservedNetwork, ...]) -> set[AddressRange]:
    view = View(
        desired=document(),
        observed=ObservedState(networks=networks),
        knows=knowledge(host_ranges=found),
        now=NOW,
    )
    return set(taken_addresses(view))


def test_a_networks_bridge_counts_as_the_network_and_a_route_behind_it_as_the_hosts() -> None:
    lan = ObservedNetwork(
        id="n1", name="lan", subnets=("172.18.0.0/16", "fd01::/64"), interface="br-1"
    )
    of_bridge = AddressRange(cidr="172.18.0.0/16", interface="br-1", direct=True)
    itself = AddressRange(cidr="172.18.0.1/32", interface="br-1", direct=True)
    link_local = AddressRange(cidr="fe80::/64", interface="br-1", direct=True)
    behind = AddressRange(cidr="10.9.0.0/16", interface="br-1")
    assert ranges(LAN, of_bridge, itself, link_local, behind, networks=(lan,)) == {
        LAN,
        behind,
        AddressRange(cidr="172.18.0.0/16", interface="br-1", network="lan"),
        AddressRange(cidr="fd01::/64", interface="br-1", network="lan"),
    }


def test_a_bridge_that_no_network_has_is_the_hosts() -> None:
    left = AddressRange(cidr="172.18.0.0/16", interface="br-0", direct=True)
    assert ranges(left, networks=()) == {left}


def test_what_no_choice_can_touch_is_not_told_and_networks_come_first() -> None:
    """A LAN's own addresses are told whatever they are: a macvlan network may be a part of it."""
    public_lan = AddressRange(cidr="203.0.113.0/24", interface="eth1", direct=True)
    vpn = AddressRange(cidr="10.50.0.0/16", interface="tun0")
    pool = AddressRange(cidr="172.17.0.0/16", network="bridge")
    silent = [
        AddressRange(cidr="0.0.0.0/0", interface="eth0"),
        AddressRange(cidr="128.0.0.0/1", interface="tun0"),
        AddressRange(cidr="127.0.0.0/8", interface="lo", direct=True),
        AddressRange(cidr="fe80::/64", interface="eth0", direct=True),
        AddressRange(cidr="198.51.100.0/24", interface="eth0"),
        AddressRange(cidr="nonsense", interface="eth0", direct=True),
    ]
    taken = [vpn, *silent, LAN, public_lan, pool]
    assert worth_telling(taken, most=9) == (pool, LAN, public_lan, vpn)
    assert worth_telling(taken, most=2) == (pool, LAN)


def test_networks_are_read_with_their_pools_and_bridges() -> None:
    raw = {
        "Id": NEW_ID,
        "Name": "lan",
        "Driver": "bridge",
        "IPAM": {"Config": [{"Subnet": "fd01::/64"}, {"Subnet": "10.1.0.0/16"}, {"Gateway": "x"}]},
    }
    found = parse.network(raw)
    assert (found.subnets, found.interface) == (("10.1.0.0/16", "fd01::/64"), "br-5f0c7c0a1b2d")
    named = {**raw, "Options": {"com.docker.network.bridge.name": "lab0"}}
    assert parse.network(named).interface == "lab0"
    for driver in ("macvlan", "host", "null", "overlay"):
        assert parse.network({**raw, "Driver": driver, "IPAM": None}).interface == ""


def test_an_engine_whose_bridges_are_seen_is_here() -> None:
    listed = [{"Id": NEW_ID, "Driver": "bridge"}, {"Id": "0" * 64, "Driver": "host"}]
    assert shows_bridge(listed, frozenset({"lo", "br-5f0c7c0a1b2d"}))
    assert not shows_bridge(listed, frozenset({"lo", "eth0", "br-000000000000", ""}))


# --- seen or unseen ------------------------------------------------------------------------------


def test_where_the_engine_is_is_asked_once_for_each_connection() -> None:
    answers = iter(["", "The engine is elsewhere."])
    known = HostAddresses(lambda: next(answers), read=lambda: (LAN,))
    assert (known.look().ranges, known.look().unseen) == ((LAN,), "")
    known.engine_returned()
    assert (known.look().ranges, known.look().unseen) == ((), "The engine is elsewhere.")


def test_an_engine_that_does_not_say_where_it_is_is_asked_again() -> None:
    asked: list[int] = []

    def ask() -> str:
        asked.append(1)
        if len(asked) == 1:
            raise EngineUnavailable("The engine is away.")
        return ""

    known = HostAddresses(ask, read=lambda: (LAN,))
    assert known.look().unseen.endswith("machine uses. The engine is away.")
    assert known.look().ranges == (LAN,)


def test_a_kernel_that_does_not_tell_its_routes_leaves_nothing_to_judge_by() -> None:
    def refuse() -> tuple[AddressRange, ...]:
        raise PermissionError(1, "Operation not permitted")

    unseen = HostAddresses(lambda: "", read=refuse).look().unseen
    assert "the kernel does not tell them" in unseen
    assert "Operation not permitted" in unseen


def test_an_agent_that_nobody_told_where_its_engine_is_sees_nothing() -> None:
    assert HostAddresses().look().unseen


# --- in the whole agent --------------------------------------------------------------------------


def test_the_heartbeat_tells_what_is_taken_and_a_network_on_it_is_refused(
    fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path
) -> None:
    """Soon after the first cycle, whatever the interval: until then the server knows nothing."""
    fake_server.settings = msgspec.structs.replace(fake_server.settings, heartbeat_interval=3600.0)
    fake_server.desire(
        networks=(network("bad", subnet="192.168.1.0/24"), network("good", subnet="10.7.0.0/24"))
    )
    known = HostAddresses(lambda: "", read=lambda: (LAN,))
    pool = AddressRange(cidr="10.7.0.0/24", network="trailer-good", network_id="n-good")
    agent = Running(fake_server, runtime, tmp_path, addresses=known)
    try:
        eventually(
            lambda: any(LAN in (b.address_ranges or ()) for b in fake_server.book.heartbeats),
            15,
            "not told",
        )
        eventually(lambda: known.told() == (pool, LAN), 15, "the new network is not seen")
    finally:
        agent.stop()
    assert [n.name for n in runtime.networks.values() if "bad" in n.name] == []
