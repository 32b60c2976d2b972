"""Whether a token may travel unencrypted: on this machine and inside private networks only.

What counts is the address at the other end of a connection, looked at before anything is sent: a
name may lead somewhere else tomorrow.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from agent.errors import ConfigError, ServerUnavailable

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

log = logging.getLogger(__name__)
VARIABLE: Final = "TRAILER_AGENT_PLAIN_HTTP"
# Between providers and in overlay networks; never routed on the internet.
_SHARED: Final = ipaddress.ip_network("100.64.0.0/10")


def check_server_address(server_url: str, *, allowed: bool) -> None:
    """At the start, where a sentence and an end are clearer than an agent that never gets through.
    A name that leads nowhere yet is no reason to end: the connections are looked at themselves."""
    parts = urlsplit(server_url)
    if parts.scheme != "http":
        return
    found = _addresses(parts.hostname or "")
    public = [address for address in found if not is_private(address)]
    if public and not allowed:
        raise ConfigError(_sentence(f"{server_url} leads to {public[0]}, a public address"))
    if found and not all(_address(text).is_loopback for text in found):
        log.warning("the token goes to %s unencrypted: use https where others listen", server_url)


def check_peer(connection: socket.socket) -> None:
    """Raises before anything was sent to a public address."""
    name = connection.getpeername()
    if isinstance(name, tuple) and not is_private(str(name[0])):
        raise ServerUnavailable(_sentence(f"the server's name leads to {name[0]} now"))


def is_private(address: str) -> bool:
    found = _address(address)
    return found.is_private or found.is_link_local or found in _SHARED


class PrivateHttpAdapter(HTTPAdapter):
    """Looks at the other end of each new connection without encryption."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {
            "http": _PrivatePool,
            "https": HTTPSConnectionPool,
        }


class _PrivateConnection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        try:
            check_peer(self.sock)
        except ServerUnavailable:
            self.close()
            raise


class _PrivatePool(HTTPConnectionPool):
    ConnectionCls = _PrivateConnection


def _sentence(what: str) -> str:
    return (
        f"The agent does not send its token unencrypted over the internet: {what}. "
        f"Give the server an https:// address, or set {VARIABLE}=1 if the way there is safe."
    )


def _address(text: str) -> IPv4Address | IPv6Address:
    """An IPv4 address in IPv6 clothes is what it is; a zone says nothing about it."""
    found = ipaddress.ip_address(text.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return sorted({str(entry[4][0]) for entry in found})
