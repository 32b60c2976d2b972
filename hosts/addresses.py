"""Which addresses are taken on a host, as far as the server knows; its agent judges once more."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import TYPE_CHECKING

import msgspec

from agent.protocol.session import AddressRange
from hosts.models import Host, Network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trailer.policy import Actor


def addresses_taken(host: Host, actor: Actor) -> list[AddressRange]:
    """What the agent reported, and what this host's networks were given here.

    A network that the actor may not see is not named.
    """
    known = {str(row.pk): row for row in Network.objects.filter(host=host.pk)}
    visible = Network.objects.visible_to(actor).filter(host=host.pk)
    seen = {str(pk) for pk in visible.values_list("pk", flat=True)}
    taken = list(_of_interfaces(host) if host.address_ranges is None else _reported(host, known))
    taken += [
        AddressRange(cidr=row.subnet, network=row.name, network_id=pk)
        for pk, row in known.items()
        if row.subnet
    ]
    return [_named(one, known, seen) for one in taken]


def _reported(host: Host, known: dict[str, Network]) -> Iterator[AddressRange]:
    """A network of ours that is deleted here goes from the host in its next cycle; one with a
    subnet is judged by its own row."""
    for raw in host.address_ranges or ():
        try:
            found = msgspec.convert(raw, AddressRange)
        except msgspec.ValidationError:
            continue
        ours = known.get(found.network_id)
        if not found.network_id or (ours is not None and not ours.subnet):
            yield found


def _of_interfaces(host: Host) -> Iterator[AddressRange]:
    """All that an older agent reports."""
    for interface in host.interfaces:
        name = str(interface.get("name", ""))
        for text in interface.get("addresses", ()):
            try:
                cidr = str(ip_interface(str(text)).network)
            except ValueError:
                continue
            yield AddressRange(cidr=cidr, interface=name, direct=True)


def _named(one: AddressRange, known: dict[str, Network], seen: set[str]) -> AddressRange:
    if one.network_id not in known:
        return one
    name = known[one.network_id].name if one.network_id in seen else "of somebody else"
    return msgspec.structs.replace(one, network=name)
