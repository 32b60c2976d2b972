"""The administrator's list TRAILER_GIT_ALLOW: where repositories may be read beside the internet.

An entry is a host (`git.internal`, `git.internal:8443`), an address or network (`10.0.0.0/8`),
`http://host[:port]` for a host that is read without encryption too, or `file:///folder`.
"""

from __future__ import annotations

import ipaddress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from workspaces.stacks.git.types import GitRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workspaces.stacks.git.address import Address


def allows(entries: Sequence[str], address: Address, addresses: Sequence[str]) -> bool:
    """Whether an entry names this place, or all of these IP addresses."""
    if any(_names(entry, address) for entry in entries):
        return True
    if address.scheme in {"http", "file"} or not addresses:
        return False
    networks = [network for entry in entries if (network := _network(entry)) is not None]
    return all(
        any(_is_in(ipaddress.ip_address(text.partition("%")[0]), net) for net in networks)
        for text in addresses
    )


def _names(entry: str, address: Address) -> bool:
    scheme, slashes, rest = entry.partition("://")
    if not slashes:
        scheme, rest = "", entry
    if scheme == "file":
        folder, path = PurePosixPath(unquote(rest)), PurePosixPath(unquote(address.path))
        return address.scheme == "file" and path.is_relative_to(folder)
    if address.scheme == "file" or _network(entry) is not None:
        return False
    if scheme not in {"", "http", "https", "ssh"}:
        raise GitRefused(f"TRAILER_GIT_ALLOW has an entry that means nothing: {entry[:80]}.")
    if address.scheme == "http" and scheme != "http":
        return False
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise GitRefused(
            f"TRAILER_GIT_ALLOW has an entry that means nothing: {entry[:80]}."
        ) from error
    return host == address.host and port in {None, address.port}


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None


def _is_in(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> bool:
    return ip.version == network.version and ip in network
