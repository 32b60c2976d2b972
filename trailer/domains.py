"""Which host names are workspaces' URLs that go through this server; plain text, no settings."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def default_url_domain(public_url: str) -> str:
    """The server's own name. Browsers find every name under `localhost` on their own machine; an
    address in digits has no names under it."""
    name = (urlsplit(public_url).hostname or "").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    return "localhost" if address.is_loopback else ""


def host_name(header: str) -> str:
    """A Host header without its port, as names are compared."""
    name = header.strip().lower()
    if not name.endswith("]"):
        head, colon, port = name.rpartition(":")
        name = head if colon and port.isdecimal() else name
    return name.rstrip(".")


def subdomain_of(header: str, *, domain: str, own: frozenset[str]) -> str | None:
    """What stands before the domain; None for the server's own names and all others."""
    name, suffix = host_name(header), f".{domain}"
    if not domain or name in own or not name.endswith(suffix):
        return None
    return name.removesuffix(suffix) or None


def address_under(public_url: str, name: str) -> str:
    """Where a name under the URL domain is opened: scheme and port are the server's own."""
    public = urlsplit(public_url)
    port = f":{public.port}" if public.port else ""
    return f"{public.scheme}://{name}{port}/"
