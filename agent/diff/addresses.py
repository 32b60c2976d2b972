"""Which addresses a new network may have on this host, as the machine and its engine show them.

Judged when a network is made, and never again: one that exists keeps what it has.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from agent.protocol import naming
from agent.protocol.session import AddressRange
from agent.protocol.subnets import (
    address_problems,
    chooses_addresses,
    is_default_route,
    is_inside,
    is_never_chosen,
    is_of_use,
    network_of,
)
from agent.steps import NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.diff.view import View
    from agent.observed import ObservedNetwork
    from agent.protocol.state import DesiredNetwork


class Addresses:
    """What is taken, with the networks that this plan already makes."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._leaving = _leaving(view)
        self._taken = list(taken_addresses(view))

    def problem(self, network: DesiredNetwork) -> str:
        """Why it may not be made with the addresses that were chosen for it, or empty."""
        if not chooses_addresses(network):
            return ""
        if self._view.knows.ranges_unseen:
            return (
                f"{self._view.knows.ranges_unseen} So nobody can tell whether those chosen for "
                "this network are free. Leave its subnet empty: the engine then chooses."
            )
        others = [one for one in self._others(network) if one.network_id not in self._leaving]
        return " ".join(address_problems(network, [_unnamed(one) for one in others]).values())

    def must_wait(self, network: DesiredNetwork) -> bool:
        """Whether a network in whose place it comes has not gone yet."""
        gone_soon = (one for one in self._others(network) if one.network_id in self._leaving)
        return bool(network.subnet) and any(address_problems(network, [one]) for one in gone_soon)

    def take(self, network: DesiredNetwork) -> None:
        if network.subnet:
            made = AddressRange(
                cidr=network.subnet,
                network=naming.network_name(network.name),
                network_id=network.id,
            )
            self._taken.append(made)

    def _others(self, network: DesiredNetwork) -> Iterator[AddressRange]:
        """All but its own, which one that is made again had before."""
        return (one for one in self._taken if one.network_id != network.id)


def taken_addresses(view: View) -> tuple[AddressRange, ...]:
    """What the machine's interfaces and routes take, and the engine's networks. The route to a
    network's own bridge counts as that network's."""
    networks = view.observed.networks
    bridges = {network.interface: network for network in networks if network.interface}
    of_host = (
        one
        for one in view.knows.host_ranges
        if not (one.interface in bridges and _is_in_pools(one.cidr, bridges[one.interface]))
    )
    of_engine = (_of_network(view, network) for network in networks)
    return (*chain.from_iterable(of_engine), *of_host)


def worth_telling(taken: Iterable[AddressRange], *, most: int) -> tuple[AddressRange, ...]:
    """What a server needs to judge with: networks first, then what the machine is on, then what
    it has routes for; without what no choice can touch."""
    told: list[AddressRange] = []
    for one in sorted(taken, key=lambda one: (not one.network, not one.direct)):
        found = network_of(one.cidr)
        if found is None or is_default_route(found) or is_never_chosen(found):
            continue
        if one.network or one.direct or is_of_use(found):
            told.append(one)
    return tuple(told[:most])


def _of_network(view: View, network: ObservedNetwork) -> Iterator[AddressRange]:
    ours = view.owns_network(network)
    network_id = network.labels.get(naming.LABEL_NETWORK, "") if ours else ""
    for subnet in network.subnets:
        yield AddressRange(
            cidr=subnet,
            interface=network.interface,
            network=network.name,
            network_id=network_id,
        )


def _unnamed(one: AddressRange) -> AddressRange:
    """Whoever reads of the network may not see the other one."""
    if not one.network_id:
        return one
    return msgspec.structs.replace(one, network="that Trailer made earlier")


def _leaving(view: View) -> frozenset[str]:
    """Ids of our networks that were deleted and go in this cycle or a later one."""
    deleted = {t.object_id for t in view.desired.tombstones if t.kind == NETWORK}
    return frozenset(deleted - view.desired_networks.keys())


def _is_in_pools(cidr: str, network: ObservedNetwork) -> bool:
    found = network_of(cidr)
    pools = (network_of(subnet) for subnet in network.subnets)
    link_local = found is not None and is_never_chosen(found)
    return found is not None and (
        link_local or any(pool is not None and is_inside(found, pool) for pool in pools)
    )
