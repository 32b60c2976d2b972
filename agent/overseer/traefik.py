"""Labels by which Traefik finds an agent that has a public domain; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROUTER: Final = "traefik.http.routers.trailer-agent"
_SERVICE: Final = "traefik.http.services.trailer-agent"
DEFAULT_PORT: Final = "6020"


def derived_labels(environment: Mapping[str, str]) -> dict[str, str]:
    """Empty without TRAILER_PUBLIC_DOMAIN."""
    domain = environment.get("TRAILER_PUBLIC_DOMAIN", "").strip()
    if not domain:
        return {}
    entrypoint = environment.get("TRAILER_TRAEFIK_ENTRYPOINT", "").strip() or "websecure"
    resolver = environment.get("TRAILER_TRAEFIK_CERTRESOLVER", "").strip() or "letsencrypt"
    port = environment.get("TRAILER_PUBLIC_PORT", "").strip() or DEFAULT_PORT
    return {
        "traefik.enable": "true",
        f"{_ROUTER}.rule": f"Host(`{domain}`)",
        f"{_ROUTER}.entrypoints": entrypoint,
        f"{_ROUTER}.tls.certresolver": resolver,
        f"{_SERVICE}.loadbalancer.server.port": port,
    }


def is_derived(label: str) -> bool:
    return label == "traefik.enable" or label.startswith((f"{_ROUTER}.", f"{_SERVICE}."))
