"""Rules for the addresses of a network; pure, because a network made wrong can't be corrected."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from trailer.errors import Invalid

# Fewer addresses than a /30 has leave no room for a container; more than a /8 is a slip.
_PREFIXES = range(8, 31)


def check_addresses(*, subnet: str, gateway: str, ip_range: str) -> None:
    """Subnet canonical, gateway a usable address of it, range canonical and inside it."""
    if not subnet:
        for field, value in (("gateway", gateway), ("ip_range", ip_range)):
            if value:
                raise Invalid.field(field, f"Give a subnet too; {value} must lie inside it.")
        return
    network = _network("subnet", subnet)
    if network.prefixlen not in _PREFIXES:
        raise Invalid.field("subnet", f"{subnet} must have a prefix between /8 and /30.")
    if gateway:
        _check_gateway(gateway, network)
    if ip_range and not _network("ip_range", ip_range).subnet_of(network):
        raise Invalid.field("ip_range", f"{ip_range} does not lie inside the subnet {subnet}.")


def overlapping(subnet: str, others: dict[str, str]) -> str | None:
    """The first name in `others` (name -> subnet) whose addresses collide with this subnet."""
    mine = IPv4Network(subnet)
    for name, other in sorted(others.items()):
        if other and IPv4Network(other).overlaps(mine):
            return name
    return None


def _network(field: str, text: str) -> IPv4Network:
    try:
        network = IPv4Network(text, strict=False)
    except ValueError as error:
        raise Invalid.field(
            field, f"{text} is not an IPv4 network; write it like 192.168.1.0/24."
        ) from error
    if str(network) != text:
        raise Invalid.field(field, f"{text} is not canonical; write {network}.")
    return network


def _check_gateway(text: str, network: IPv4Network) -> None:
    try:
        address = IPv4Address(text)
    except ValueError as error:
        raise Invalid.field("gateway", f"{text} is not an IPv4 address.") from error
    if address not in network:
        raise Invalid.field("gateway", f"{text} does not lie inside the subnet {network}.")
    if address in (network.network_address, network.broadcast_address):
        raise Invalid.field("gateway", f"{text} can't be a gateway: {network} reserves it.")
