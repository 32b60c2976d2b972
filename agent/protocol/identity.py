"""By what names visitors of workspaces' URLs are known, to the server and to a host's router."""

from __future__ import annotations

from typing import Final

_WHO: Final = ("User", "Email", "Groups", "Name")
_BY: Final = (
    *("X-Trailer", "Remote", "X-Remote", "X-Forwarded", "X-Auth", "X-Auth-Request"),
    *("X-Authenticated", "X-Authentik", "X-Webauth", "X-Token"),
)
# Who somebody is and what they asked for, in words that programs behind a proxy trust: no client's
# own reach a program. A router can only take out what has a name; the server, which reads each
# field, drops more. Not those that Traefik writes itself (`X-Forwarded-For` and the like).
CLAIMS: Final = (
    *(f"{by}-{who}" for by in _BY for who in _WHO),
    *("X-Forwarded-Preferred-Username", "X-Auth-Request-Preferred-Username"),
    *("X-Authentik-Username", "X-Auth-Username", "X-Auth", "X-User", "X-Email"),
    *("X-Goog-Authenticated-User-Email", "X-Goog-Authenticated-User-Id"),
    *("Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "Client-Ip", "X-Client-Ip"),
    *("X-Cluster-Client-Ip", "X-Original-Url", "X-Original-Uri", "X-Original-Method"),
    *("X-Rewrite-Url",),
)
VISIT_COOKIE: Final = "trailer_url"
# Browsers take such a cookie over HTTPS and from the very host alone, not from its neighbours.
_OWN: Final = "__Host-"


def cookie_name(plain: str, *, secure: bool) -> str:
    return f"{_OWN}{plain}" if secure else plain
