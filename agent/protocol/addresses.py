"""Which addresses programs of the platform connect to on a user's behalf: one rule for the
repositories that the server reads, and for the sources and registries that agents read.

A user's text decides where the connection goes, so the name is resolved by whoever connects, every
answer is judged here, and the connection goes to a judged answer. Pure: it resolves nothing.

Entries of an allow-list are a host (`git.internal`, `git.internal:8443`), an address or network
(`10.0.0.0/8`), `http://host[:port]` for a host that is read without encryption too, or, for
repositories, `file:///folder`.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LABEL: Final = r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_ENTRY_SCHEMES: Final = frozenset({"", "http", "https", "ssh"})
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# Azure tells a machine about itself at an address that is public by its number.
_METADATA: Final = frozenset({ipaddress.IPv4Address("168.63.129.16")})


class BadHost(ValueError):
    """The text cannot be the host of an address; a sentence that says why."""


class BadEntry(ValueError):
    """An entry of an allow-list means nothing; a sentence that quotes it."""


@dataclass(frozen=True)
class Place:
    """Where a connection goes, by name. `host` is as `host_name` returns it."""

    scheme: str
    host: str
    port: int
    path: str = "/"


def host_name(text: str) -> str:
    """In small letters and without the dot at the end; raises BadHost for what programs do not
    all read alike, like 127.1 or an address with a zone."""
    host = text.lower().removesuffix(".")
    if ":" in host:
        try:
            found = ipaddress.IPv6Address(host)
        except ValueError as error:
            raise BadHost(f"{text[:80]} is no IPv6 address.") from error
        if found.scope_id is not None:
            raise BadHost(f"Write the IPv6 address {text[:80]} without its zone.")
        return str(found)
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        # 127.1, 0177.0.0.1 and 2130706433 are all one address to some programs.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError as error:
            raise BadHost("Write the host's IP address as four decimal numbers.") from error
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise BadHost(f"{text[:80] or 'It'} is no valid host name.")
    return host


def is_public(text: str) -> bool:
    """Whether an IP address is one of the internet. Addresses that carry an IPv4 address inside
    are judged by that one too."""
    ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast and ip not in _METADATA
    if ip in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    if ip not in _UNICAST or not ip.is_global or ip.teredo:
        return False
    return ip.sixtofour is None or is_public(str(ip.sixtofour))


def refused_addresses(
    allow: Sequence[str], place: Place, found: Iterable[str], *, own: Iterable[str] = ()
) -> tuple[str, ...]:
    """Those of the addresses found for the place to which nobody may connect; `own` are addresses
    of this very machine, which count as private whatever their number."""
    mine = set(own)
    refused = tuple(text for text in found if text in mine or not is_public(text))
    return () if refused and allows(allow, place, refused, plain=True) else refused


def literal_refused(allow: Sequence[str], place: Place) -> bool:
    """Whether the place is an IP address, or this machine's name, to which nobody may connect:
    what can be said without asking a name server."""
    if place.host == "localhost" or place.host.endswith(".localhost"):
        return not allows(allow, place, ("127.0.0.1",), plain=True)
    try:
        ipaddress.ip_address(place.host)
    except ValueError:
        return False
    return bool(refused_addresses(allow, place, (place.host,)))


def allows(
    entries: Sequence[str], place: Place, addresses: Sequence[str], *, plain: bool = False
) -> bool:
    """Whether an entry names this place, or all of these IP addresses. With `plain` an entry opens
    a place without encryption too, without it only an entry that begins with http:// does."""
    if any(_names(entry, place, plain=plain) for entry in entries):
        return True
    if (place.scheme in {"http", "file"} and not plain) or not addresses:
        return False
    networks = [network for entry in entries if (network := _network(entry)) is not None]
    return all(
        any(_is_in(ipaddress.ip_address(text.partition("%")[0]), net) for net in networks)
        for text in addresses
    )


def _names(entry: str, place: Place, *, plain: bool) -> bool:
    scheme, slashes, rest = entry.partition("://")
    if not slashes:
        scheme, rest = "", entry
    if scheme == "file":
        folder, path = PurePosixPath(unquote(rest)), PurePosixPath(unquote(place.path))
        return place.scheme == "file" and path.is_relative_to(folder)
    if place.scheme == "file" or _network(entry) is not None:
        return False
    if scheme not in _ENTRY_SCHEMES:
        raise BadEntry(entry[:80])
    if place.scheme == "http" and scheme != "http" and not plain:
        return False
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadEntry(entry[:80]) from error
    return host == place.host and port in {None, place.port}


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
