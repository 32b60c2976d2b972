"""Addresses of the machine's interfaces and its routes, asked of the kernel over netlink.

By hand, as the packet filter's messages are: the program `ip` is missing in the agent's image.
Reading takes no privilege. Answered for the network namespace of the calling thread.
"""

from __future__ import annotations

import os
import socket
import struct
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

from agent.guard.netlink import DUMP, REQUEST, attributes_in
from agent.protocol.session import AddressRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NETLINK_ROUTE: Final = 0
_NEW_ADDRESS, _GET_ADDRESS = 20, 22
_NEW_ROUTE, _GET_ROUTE = 24, 26
_ERROR, _DONE = 2, 3
# The kernel's table changed while it was read.
_INTERRUPTED: Final = 0x10
_TRIES: Final = 5
_HEAD: Final = struct.Struct("=IHHII")
_ERRNO: Final = struct.Struct("=i")
_INDEX: Final = struct.Struct("=I")
# Family, length of the prefix, flags, scope, index of the interface.
_ADDRESS: Final = struct.Struct("=BBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
# Family, lengths of destination and source, TOS, table, protocol, scope, type, flags.
_ROUTE: Final = struct.Struct("=BBBBBBBBI")
_RTA_DESTINATION, _RTA_INTERFACE, _RTA_GATEWAY, _RTA_MULTIPATH, _RTA_VIA = 1, 4, 5, 9, 18
_NEXT_HOP: Final = struct.Struct("=HBBi")
# Types of routes that lead somewhere or into nowhere on purpose; the others (broadcast,
# multicast, throw) only go with one of these.
_UNICAST, _LOCAL = 1, 2
_TAKING: Final = frozenset({_UNICAST, _LOCAL, 6, 7, 8})
_CLONED: Final = 0x200
_BUFFER: Final = 1 << 18
_PATIENCE: Final = 5.0
_FAMILIES: Final = {int(socket.AF_INET): 4, int(socket.AF_INET6): 16}


class _Interrupted(Exception):
    pass


def read_ranges() -> tuple[AddressRange, ...]:
    """All tables of routes, the interfaces that are down too. Raises OSError."""
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError("this system has no netlink")
    for _ in range(_TRIES):
        try:
            found = {*_dump(_GET_ADDRESS, _of_address), *_dump(_GET_ROUTE, _of_route)}
        except _Interrupted:
            continue
        return tuple(sorted(found, key=lambda one: (one.cidr, one.interface, one.direct)))
    raise OSError("the routes change faster than they can be read")


def interface_names() -> frozenset[str]:
    return frozenset(name for _, name in socket.if_nameindex())


def _dump(
    kind: int, read: Callable[[int, bytes], Iterator[AddressRange]]
) -> Iterator[AddressRange]:
    """Of all families at once; what is neither IPv4 nor IPv6 is left out."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.settimeout(_PATIENCE)
        kernel.bind((0, 0))
        body = bytes(_ROUTE.size)
        kernel.send(_HEAD.pack(_HEAD.size + len(body), kind, REQUEST | DUMP, 1, 0) + body)
        while True:
            received = kernel.recv(_BUFFER)
            at = 0
            while at + _HEAD.size <= len(received):
                length, told, flags, _, _ = _HEAD.unpack_from(received, at)
                if length < _HEAD.size:
                    raise OSError("the kernel's answer is cut off")
                part = received[at + _HEAD.size : at + length]
                at += length + -length % 4
                if flags & _INTERRUPTED:
                    raise _Interrupted
                if told == _DONE:
                    return
                if told == _ERROR:
                    number = -_ERRNO.unpack_from(part)[0]
                    raise OSError(number, os.strerror(number))
                yield from read(told, part)


def _of_address(kind: int, body: bytes) -> Iterator[AddressRange]:
    """Of a point-to-point link the peer's address, and one's own beside it."""
    if kind != _NEW_ADDRESS or len(body) < _ADDRESS.size:
        return
    family, prefix, _, _, index = _ADDRESS.unpack_from(body)
    fields = dict(attributes_in(body[_ADDRESS.size :]))
    whole = family in _FAMILIES
    for number, length in ((_IFA_ADDRESS, prefix), (_IFA_LOCAL, _FAMILIES.get(family, 0) * 8)):
        if whole and number in fields:
            yield _range(fields[number], length, interface=_name(index), direct=True)


def _of_route(kind: int, body: bytes) -> Iterator[AddressRange]:
    if kind != _NEW_ROUTE or len(body) < _ROUTE.size:
        return
    family, length, _, _, _, _, _, type_, flags = _ROUTE.unpack_from(body)
    if family not in _FAMILIES or type_ not in _TAKING or flags & _CLONED:
        return
    fields = dict(attributes_in(body[_ROUTE.size :]))
    destination = fields.get(_RTA_DESTINATION, bytes(_FAMILIES[family]))
    interface, gateway = _way(fields)
    direct = type_ in (_UNICAST, _LOCAL) and bool(interface) and not gateway
    yield _range(destination, length, interface=interface, direct=direct)


def _way(fields: dict[int, bytes]) -> tuple[str, bool]:
    """The interface, and whether there is a gateway behind it; of several ways the first."""
    if _RTA_INTERFACE in fields:
        index = _INDEX.unpack_from(fields[_RTA_INTERFACE])[0]
        return _name(index), _RTA_GATEWAY in fields or _RTA_VIA in fields
    if _RTA_MULTIPATH in fields:
        hops = fields[_RTA_MULTIPATH]
        length, _, _, index = _NEXT_HOP.unpack_from(hops)
        hop = dict(attributes_in(hops[_NEXT_HOP.size : length]))
        return _name(index), _RTA_GATEWAY in hop or _RTA_VIA in hop
    return "", False


def _range(address: bytes, length: int, *, interface: str, direct: bool) -> AddressRange:
    network = ip_network((ip_address(address), length), strict=False)
    return AddressRange(cidr=str(network), interface=interface, direct=direct)


def _name(index: int) -> str:
    """Empty for an interface that has just gone."""
    try:
        return socket.if_indextoname(index)
    except OSError:
        return ""
