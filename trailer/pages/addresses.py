"""Where a published port can be opened from the user's browser, as far as Trailer can know."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hosts.models import Host
    from workspaces.models import Port

# Interfaces that lead to containers and virtual machines, never to the host itself.
_INNER = ("lo", "docker", "br-", "veth", "virbr", "cni", "flannel")
_TLS_PORTS = (443, 8443)


def port_address(port: Port, host: Host, asked_host: str) -> str:
    """Empty when there is nothing to open: no TCP, a port that the engine picks, a host whose
    addresses are unknown. `asked_host` is the name under which the user reached Trailer."""
    if port.host_port is None or port.protocol != "tcp":
        return ""
    name = _name_of(port.host_ip, host, asked_host)
    if not name:
        return ""
    scheme = "https" if port.host_port in _TLS_PORTS else "http"
    return f"{scheme}://{_bracketed(name)}:{port.host_port}/"


def _name_of(host_ip: str, host: Host, asked_host: str) -> str:
    """The host as the user's browser reaches this port, or "" when it cannot."""
    bound = ipaddress.ip_address(host_ip) if host_ip else None
    on_its_machine = _is_loopback(asked_host)
    if bound is None or bound.is_unspecified:
        # Whoever reaches Trailer over the loopback sits on its machine, as its first host does.
        return asked_host if on_its_machine else next(_own_addresses(host), "")
    return "" if bound.is_loopback and not on_its_machine else host_ip


def _own_addresses(host: Host) -> Iterator[str]:
    for interface in host.interfaces:
        if str(interface.get("name", "")).startswith(_INNER):
            continue
        for text in interface.get("addresses", []):
            try:
                address = ipaddress.ip_interface(text).ip
            except ValueError:
                continue
            if not (address.is_loopback or address.is_link_local):
                yield str(address)


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name
