"""From a workspace's URLs to routes; one function for both ways of telling Traefik.

While a workspace is replaced, its old and its new container may both carry routes: their names
differ by the revision, and the newer one has the higher priority.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol import naming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.spec import UrlSpec, WorkspaceSpec
    from agent.protocol.state import RouterSettings

FILES: Final = "traefik-files"
LABELS: Final = "traefik-labels"
PUBLIC: Final = frozenset({"public", "none"})
# Above the length of any rule, which is what Traefik itself would take for a priority.
_BASE_PRIORITY: Final = 1000
_SECURE: Final = "websecure"


@dataclass(frozen=True, kw_only=True)
class Route:
    """`auth_address` is where the router asks for each request; empty for everybody."""

    name: str
    host: str
    port: int
    priority: int
    entrypoint: str = ""
    tls: bool = False
    certresolver: str = ""
    auth_address: str = ""

    @property
    def rule(self) -> str:
        return f"Host(`{self.host}`)"


def routed_urls(spec: WorkspaceSpec, router: RouterSettings) -> tuple[UrlSpec, ...]:
    """Those that the host's router serves: not the ones that go through the server."""
    if router.mode not in (FILES, LABELS):
        return ()
    return tuple(
        url for url in sorted(spec.urls) if not (url.domain and url.domain == router.relay_domain)
    )


def routes_of(
    workspace_id: str,
    spec: WorkspaceSpec,
    router: RouterSettings,
    *,
    revision: int,
    host_id: str,
    host_key: str,
) -> tuple[Route, ...]:
    urls = routed_urls(spec, router)
    alike = Counter(map(_slug, urls))
    return tuple(
        Route(
            name=f"trailer-{workspace_id[:8]}-{_own_slug(url, alike)}-r{revision}",
            host=f"{url.subdomain}.{url.domain}",
            port=url.port,
            priority=_BASE_PRIORITY + revision,
            entrypoint=_entrypoint(url, router),
            tls=url.tls,
            certresolver=router.certresolver if url.tls else "",
            auth_address=""
            if url.auth in PUBLIC
            else _auth_address(
                workspace_id, f"{url.subdomain}.{url.domain}", router, host_id, host_key
            ),
        )
        for url in urls
    )


def _auth_address(
    workspace_id: str, host: str, router: RouterSettings, host_id: str, host_key: str
) -> str:
    key = naming.forward_auth_key(host_key, workspace_id, host, host_id)
    return f"{router.forward_auth}{workspace_id}/{host}/?key={key}"


def _entrypoint(url: UrlSpec, router: RouterSettings) -> str:
    if router.managed and url.tls:
        return _SECURE
    return router.entrypoint or ("web" if router.managed else "")


def _slug(url: UrlSpec) -> str:
    return f"{url.subdomain}-{url.domain}".replace(".", "-")


def _own_slug(url: UrlSpec, alike: Mapping[str, int]) -> str:
    """`a-b.c` and `a.b-c` read alike; only such URLs are told apart by more, because another name
    replaces containers that carry it."""
    slug = _slug(url)
    if alike[slug] == 1:
        return slug
    host = f"{url.subdomain}.{url.domain}"
    return f"{slug}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"
