"""Reads a service's published ports, in Compose's short and long form."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from agent.protocol.spec import PortSpec

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item

_MAX_PORT: Final = 65_535
_MAX_RANGE: Final = 100
# [address:][host port:]container port[/protocol]; ports may be ranges, IPv6 stands in brackets.
_SHORT: Final = re.compile(
    r"(?:(?:(?P<v4>\d+(?:\.\d+)+)|\[(?P<v6>[0-9a-fA-F:.]+)\]):(?=[^:]*:))?"
    r"(?:(?P<host>\d{1,5}(?:-\d{1,5})?)?:)?"
    r"(?P<container>\d{1,5}(?:-\d{1,5})?)(?:/(?P<protocol>tcp|udp))?"
)
_LONG: Final = ("target", "published", "protocol", "host_ip", "mode", "name")


def read_ports(item: Item) -> tuple[PortSpec, ...]:
    ports: list[PortSpec] = []
    for entry in item.entries():
        found = [_long(entry)] if entry.is_map else _short(entry)
        if any(port in ports for port in found):
            raise entry.wrong("is listed twice")
        ports.extend(found)
    return tuple(ports)


def _short(item: Item) -> list[PortSpec]:
    match = _SHORT.fullmatch(item.plain_text().strip())
    if not match:
        raise item.wrong('must be a port, for example "8080:80", "127.0.0.1:8080:80" or "53/udp"')
    containers = _range(item, match["container"])
    hosts: list[int] | list[None] = (
        _range(item, match["host"]) if match["host"] else [None] * len(containers)
    )
    if len(hosts) != len(containers):
        raise item.wrong("both ranges must be of the same length")
    return [
        PortSpec(
            container_port=container,
            host_port=host,
            protocol=match["protocol"] or "tcp",
            host_ip=_address(item, match["v4"] or match["v6"] or ""),
        )
        for container, host in zip(containers, hosts, strict=True)
    ]


def _range(item: Item, text: str) -> list[int]:
    first, _, last = text.partition("-")
    start, end = int(first), int(last or first)
    if not 1 <= start <= end <= _MAX_PORT:
        raise item.wrong(f"ports are between 1 and {_MAX_PORT}")
    if end - start >= _MAX_RANGE:
        raise item.wrong(f"a range may hold at most {_MAX_RANGE} ports")
    return list(range(start, end + 1))


def _long(item: Item) -> PortSpec:
    known = item.known(_LONG)
    if "target" not in known:
        raise item.wrong("needs target")
    if "mode" in known:
        known["mode"].choice(("host", "ingress"))
    address = known.get("host_ip")
    return PortSpec(
        container_port=known["target"].integer(1, _MAX_PORT),
        host_port=known["published"].integer(1, _MAX_PORT) if "published" in known else None,
        protocol=known["protocol"].choice(("tcp", "udp")) if "protocol" in known else "tcp",
        host_ip=_address(address, address.plain_text()) if address else "",
    )


def _address(item: Item, text: str) -> str:
    if not text:
        return ""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise item.wrong("the address must be an IP address of the host") from error
