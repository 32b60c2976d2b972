"""Small subnets cut from one range: an engine has only some thirty ranges of its own; pure."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def free_subnet(ranges: Iterable[str], used: Iterable[str], *, prefix: int) -> tuple[str, str]:
    """The first subnet of that size which nobody uses, and the range it is from; empty if all are
    taken."""
    taken = [found for text in used if (found := _network(text)) is not None]
    for text in sorted(set(ranges)):
        whole = _network(text)
        if whole is None or whole.prefixlen > prefix:
            continue
        near = [network for network in taken if network.overlaps(whole)]
        for part in whole.subnets(new_prefix=prefix):
            if not any(part.overlaps(network) for network in near):
                return str(part), text
    return "", ""


def _network(text: str) -> IPv4Network | None:
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return None
    return found if isinstance(found, IPv4Network) else None
