"""Which host names are ours to relay, and where a workspace's URL is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from hosts.domains import served_port
from trailer import domains
from workspaces.own_names import own_names

if TYPE_CHECKING:
    from workspaces.models import Url


def relayed_subdomain(host_header: str) -> str | None:
    return domains.subdomain_of(host_header, domain=settings.TRAILER_URL_DOMAIN, own=own_names())


def is_relayed(host_header: str) -> bool:
    return relayed_subdomain(host_header) is not None


def url_address(url: Url) -> str:
    """Under the server's domain it is opened like the server itself, else on the port that was
    registered with the domain: never the one that a visitor names, where another program may
    listen and would get their proof."""
    name = f"{url.subdomain}.{url.domain}"
    if is_relayed(name):
        return domains.address_under(settings.TRAILER_PUBLIC_URL, name)
    port = served_port(url.workspace.host, url.domain)
    place = f"{name}:{port}" if port else name
    return f"{'https' if url.tls else 'http'}://{place}/"
