"""Domains that a host's router serves, as administrators registered them, some with a port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hosts.models import Host

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ENTRY: Final = re.compile(rf"(?P<name>{_LABEL}(\.{_LABEL})*)(:(?P<port>[1-9][0-9]{{0,4}}))?")


class Registered(NamedTuple):
    host_name: str
    domain: str


def read_domains(entries: Iterable[object]) -> dict[str, int | None]:
    """Names and the ports they are served on, where that is not the usual one. Raises ValueError
    with the first entry that is none."""
    found: dict[str, int | None] = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry.lower()) if isinstance(entry, str) else None
        port = int(match["port"]) if match and match["port"] else None
        if match is None or len(match["name"]) > 253 or (port or 0) > 65535:
            raise ValueError(entry)
        found[match["name"]] = port
    return found


def served_port(host: Host, domain: str) -> int | None:
    return read_domains(host.router_domains).get(domain)


def registered_elsewhere(domains: Iterable[str], *, host_id: UUID) -> Registered | None:
    """The first of them that is another host's: a name in the DNS leads to one host."""
    wanted = set(domains)
    if not wanted:
        return None
    for other in Host.objects.exclude(router_domains=[]).exclude(pk=host_id).order_by("name"):
        for domain in sorted(wanted & read_domains(other.router_domains).keys()):
            return Registered(other.name, domain)
    return None
