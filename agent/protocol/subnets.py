"""Which addresses somebody may choose for a network: one rule for server and agent; pure.

The engine puts a chosen subnet on the host: a bridge with a route. From then on the host sends its
own traffic for these addresses to whoever is on that network. So a chosen subnet lies in private
space that nothing else on the host uses. What the engine chooses itself is free by its own rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.protocol.session import AddressRange

    IPNetwork = IPv4Network | IPv6Network

MACVLAN: Final = "macvlan"
# Fewer addresses than a /30 has leave no room for a container; more than a /8 is a slip.
PREFIXES: Final = range(8, 31)
# Where clouds hand out what belongs to the machine, credentials among it. Azure's 168.63.129.16 is
# left out: it is name server and health check there, and metadata come from the usual address.
METADATA_ADDRESSES: Final = (
    "169.254.169.254",
    "169.254.170.2",  # Amazon ECS
    "169.254.42.42",  # Scaleway
    "169.254.0.23",  # Tencent
    "100.100.100.200",  # Alibaba
    "fd00:ec2::254",  # Amazon
    "fd20:ce::254",  # Google
    "fd00:c1::a9fe:a9fe",  # Oracle
    "fd00:42::42",  # Scaleway
)
_PRIVATE: Final = tuple(
    ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
# Never, not even as part of the LAN that a macvlan network is on.
_NEVER: Final = tuple(
    (ip_network(text), words)
    for text, words in (
        ("0.0.0.0/8", "addresses that stand for no host"),
        ("127.0.0.0/8", "loopback addresses"),
        ("169.254.0.0/16", "link-local addresses, a cloud's metadata among them"),
        ("224.0.0.0/4", "multicast addresses"),
        ("240.0.0.0/4", "reserved addresses"),
        ("::/96", "loopback addresses"),
        ("::ffff:0:0/96", "IPv4 addresses in the spelling of IPv6"),
        ("fe80::/10", "link-local addresses"),
        ("ff00::/8", "multicast addresses"),
        *((address, "the address of a cloud's metadata") for address in METADATA_ADDRESSES),
    )
)
_NOT_PRIVATE: Final = tuple(
    (ip_network(text), words)
    for text, words in (
        ("100.64.0.0/10", "addresses that providers share between their customers"),
        ("192.0.0.0/24", "addresses reserved for protocols"),
        ("192.0.2.0/24", "addresses reserved for documentation"),
        ("198.18.0.0/15", "addresses reserved for benchmarks"),
        ("198.51.100.0/24", "addresses reserved for documentation"),
        ("203.0.113.0/24", "addresses reserved for documentation"),
        ("2001:db8::/32", "addresses reserved for documentation"),
    )
)
_INSTEAD: Final = (
    "Choose a part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 that the host does not use, or "
    "leave the subnet empty: the engine then chooses."
)
# The engine's own: on one of them a macvlan network would join the containers of others.
_ENGINE_INTERFACE: Final = re.compile(r"lo|docker.*|veth.*|br-[0-9a-f]{12}")
_INTERFACE: Final = re.compile(r"[^\s/\x00-\x1f\x7f]{1,15}")


class Addresses(Protocol):
    """What a desired network says of them; empty texts leave the choice to the engine."""

    @property
    def driver(self) -> str: ...
    @property
    def parent_interface(self) -> str: ...
    @property
    def subnet(self) -> str: ...
    @property
    def gateway(self) -> str: ...
    @property
    def ip_range(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class ChosenAddresses:
    driver: str = "bridge"
    parent_interface: str = ""
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""


def chooses_addresses(network: Addresses) -> bool:
    """True when anything about the network's place on the host is not left to the engine."""
    chosen = (network.parent_interface, network.subnet, network.gateway, network.ip_range)
    return network.driver == MACVLAN or any(chosen)


def address_problems(network: Addresses, taken: Iterable[AddressRange]) -> dict[str, str]:
    """Field -> why its value may not be. `taken` are the addresses in use on the host, without
    those of the network itself."""
    found, taken = {}, tuple(taken)
    if problem := _parent_problem(network.parent_interface, taken):
        found["parent_interface"] = problem
    if not network.subnet:
        for field, value in (("gateway", network.gateway), ("ip_range", network.ip_range)):
            if value:
                found[field] = f"Give a subnet too; {value} must lie inside it."
        return found
    subnet, problem = _read(network.subnet)
    problem = problem or _size_problem(subnet) or _place_problem(network, subnet, taken)
    if problem or subnet is None:
        found["subnet"] = problem
        return found
    if network.gateway and (problem := _gateway_problem(network.gateway, subnet)):
        found["gateway"] = problem
    if network.ip_range and (problem := _range_problem(network.ip_range, subnet)):
        found["ip_range"] = problem
    return found


def network_of(text: str) -> IPNetwork | None:
    """Whatever an agent or an engine says; None for what is no network, or one of a zone."""
    if "%" in text:
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def is_default_route(network: IPNetwork) -> bool:
    """Everything that has no better route; a VPN may say it in two halves."""
    return network.prefixlen <= 1


def is_of_use(network: IPNetwork) -> bool:
    """Whether a network that somebody chooses could collide with it at all."""
    return any(_overlap(network, private) for private in _PRIVATE)


def is_never_chosen(network: IPNetwork) -> bool:
    return any(is_inside(network, never) for never, _ in _NEVER)


def is_inside(inner: IPNetwork, outer: IPNetwork) -> bool:
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network):
        return inner.subnet_of(outer)
    return False


# --- one field -----------------------------------------------------------------------------------


def _read(text: str) -> tuple[IPNetwork | None, str]:
    network = network_of(text)
    if network is None:
        return None, f"{text} is not an IPv4 network; write it like 192.168.1.0/24."
    if str(network) != text:
        return None, f"{text} is not canonical; write {network}."
    return network, ""


def _size_problem(subnet: IPNetwork | None) -> str:
    if isinstance(subnet, IPv4Network) and subnet.prefixlen not in PREFIXES:
        return f"{subnet} must have a prefix between /8 and /30."
    return ""


def _parent_problem(name: str, taken: tuple[AddressRange, ...]) -> str:
    if not name:
        return ""
    if not _INTERFACE.fullmatch(name):
        return f"{name} is not the name of an interface."
    # A part after a dot is a VLAN on that interface.
    base = name.partition(".")[0]
    bridges = {range_.interface for range_ in taken if range_.network}
    if _ENGINE_INTERFACE.fullmatch(base) or bridges & {name, base} - {""}:
        return f"The interface {name} belongs to the engine or the host itself; choose another."
    return ""


def _gateway_problem(text: str, subnet: IPNetwork) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        return f"{text} is not an IPv4 address."
    if str(address) != text:
        return f"{text} is not canonical; write {address}."
    if address not in subnet:
        return f"{text} does not lie inside the subnet {subnet}."
    edges = (subnet.network_address, subnet.broadcast_address)
    if isinstance(address, IPv4Address) and address in edges:
        return f"{text} can't be a gateway: {subnet} reserves it."
    return ""


def _range_problem(text: str, subnet: IPNetwork) -> str:
    found, problem = _read(text)
    if found is None:
        return problem
    if not is_inside(found, subnet):
        return f"{text} does not lie inside the subnet {subnet}."
    return ""


# --- where it lies -------------------------------------------------------------------------------


def _place_problem(
    network: Addresses, subnet: IPNetwork | None, taken: tuple[AddressRange, ...]
) -> str:
    if subnet is None:
        return ""
    for never, words in _NEVER:
        if _overlap(subnet, never):
            return f"{subnet} holds {words}: the host's own traffic would go there. {_INSTEAD}"
    lans = tuple(_lans(network, taken))
    in_lan = any(is_inside(subnet, lan) for lan in lans if lan.num_addresses > 1)
    if not in_lan and not any(is_inside(subnet, private) for private in _PRIVATE):
        return f"{subnet} holds {_what_is_public(subnet)}. {_INSTEAD}"
    if subnet.version != 4:
        return f"Only IPv4 subnets can be chosen, which {subnet} is not. {_INSTEAD}"
    for range_, other in _colliding(subnet, taken):
        if range_.network or not _is_own_lan(network, range_, in_lan=in_lan, lone=other):
            return f"{subnet} overlaps with {other}, {_whose(range_)}. {_INSTEAD}"
    return ""


def _lans(network: Addresses, taken: tuple[AddressRange, ...]) -> Iterator[IPNetwork]:
    """What a macvlan network's interface is on. The network becomes a part of it, on purpose."""
    if network.driver != MACVLAN or not network.parent_interface:
        return
    for range_ in taken:
        if range_.interface != network.parent_interface or not range_.direct:
            continue
        found = network_of(range_.cidr)
        if found is not None and not is_default_route(found):
            yield found


def _is_own_lan(
    network: Addresses, range_: AddressRange, *, in_lan: bool, lone: IPNetwork
) -> bool:
    """Inside the LAN nothing but the engine's networks is in the way. How large the LAN is, is
    not known of an interface that shows nothing but its own address."""
    own = network.driver == MACVLAN and range_.interface == network.parent_interface
    return in_lan or (own and lone.num_addresses == 1)


def _colliding(
    subnet: IPNetwork, taken: tuple[AddressRange, ...]
) -> Iterator[tuple[AddressRange, IPNetwork]]:
    for range_ in sorted(taken, key=lambda one: (not one.network, not one.direct, one.cidr)):
        other = network_of(range_.cidr)
        if other is None or is_default_route(other):
            continue
        if _overlap(subnet, other):
            yield range_, other


def _whose(range_: AddressRange) -> str:
    if range_.network:
        return f"which the network {range_.network} has"
    if not range_.interface:
        return "which the host has a route for"
    verb = "is on" if range_.direct else "reaches"
    return f"which the host {verb} by its interface {range_.interface}"


def _what_is_public(subnet: IPNetwork) -> str:
    for known, words in _NOT_PRIVATE:
        if _overlap(subnet, known):
            return words
    return "public addresses, which the host could not reach any more"


def _overlap(one: IPNetwork, other: IPNetwork) -> bool:
    return is_inside(one, other) or is_inside(other, one)
