"""Routes in Traefik's two spellings: a file of dynamic configuration, and labels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.protocol.identity import CLAIMS, VISIT_COOKIE, cookie_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.routing.routes import Route

# The same in both. The engine replaces a file by removing it first, and without any file Traefik
# serves nothing for that moment: so one is always there whole while the other is written.
ROUTES_FILES: Final = ("trailer.spare.yml", "trailer.yml")
# The endpoint says what is left of these; what it leaves out, the app does not get.
_FROM_AUTH: Final = ("X-Trailer-User", "Cookie", "Authorization")
_INHERITED: Final = re.compile(r"traefik\.(http|tcp|udp)\.routers\.([^.]+)\.", re.IGNORECASE)
_AUTH_ADDRESS: Final = re.compile(
    r"traefik\.http\.middlewares\.trailer-[^.]+-auth\.forwardauth\.address"
)
NETWORK_LABEL: Final = "traefik.docker.network"
# No entry point has this name: a router there is never made.
_NOWHERE: Final = "trailer-nowhere"


def routes_file(routes: Iterable[tuple[str, Route]]) -> bytes:
    """`routes` are pairs of an address on the router's network and a route. JSON, which is YAML
    too. Never empty, so that the last route goes as any other."""
    routers: dict[str, Any] = {}
    services: dict[str, Any] = {}
    middlewares: dict[str, Any] = {"trailer-strip": {"headers": _strip()}}
    for address, route in sorted(routes, key=lambda pair: pair[1].name):
        routers[route.name] = _router(route, "trailer-strip")
        server = {"url": f"http://{address}:{route.port}"}
        services[route.name] = {"loadBalancer": {"servers": [server], "passHostHeader": True}}
        if route.auth_address:
            middlewares[route.name] = {"forwardAuth": _forward_auth(route)}
            routers[route.name]["middlewares"].append(route.name)
    http: dict[str, Any] = {"middlewares": middlewares}
    if routers:
        http |= {"routers": routers, "services": services}
    return msgspec.json.encode({"http": http}, order="sorted")


def route_labels(
    routes: Iterable[Route], *, network: str, inherited: Mapping[str, str]
) -> dict[str, str]:
    """For a container whose image may carry labels of its own: those make no route."""
    matches = (_INHERITED.match(key) for key in inherited)
    labels = {
        f"traefik.{match[1].lower()}.routers.{match[2]}.entrypoints": _NOWHERE
        for match in matches
        if match
    }
    found = tuple(routes)
    labels["traefik.enable"] = "true" if found else "false"
    if found and network:
        labels[NETWORK_LABEL] = network
    for route in found:
        labels.update(_labels(route))
    # Traefik takes other spellings of a key for the same one: none may say something else.
    said = {key.lower(): text for key, text in labels.items()}
    labels.update({key: said[key.lower()] for key in inherited if key.lower() in said})
    return labels


def router_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Of our routers. Those that lead nowhere came with the image, as a snapshot of a workspace
    has those of its time."""
    found = {
        key: text
        for key, text in labels.items()
        if key.startswith("traefik.http.routers.trailer-")
    }
    return {
        key: text
        for key, text in found.items()
        if found.get(f"{_router_of(key)}.entrypoints") != _NOWHERE
    }


def auth_addresses(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in labels.items() if _AUTH_ADDRESS.fullmatch(key)}


def _router_of(key: str) -> str:
    return ".".join(key.split(".")[:4])


def _router(route: Route, strip: str) -> dict[str, Any]:
    router: dict[str, Any] = {
        "rule": route.rule,
        "service": route.name,
        "priority": route.priority,
        "middlewares": [strip],
    }
    if route.entrypoint:
        router["entryPoints"] = [route.entrypoint]
    if route.tls:
        router["tls"] = {"certResolver": route.certresolver} if route.certresolver else {}
    return router


def _strip() -> dict[str, Any]:
    """Other spellings (`_`, `.`) never get in: the entry points delete those."""
    return {"customRequestHeaders": dict.fromkeys(CLAIMS, "")}


def _forward_auth(route: Route) -> dict[str, Any]:
    return {
        "address": route.auth_address,
        "trustForwardHeader": False,
        "authResponseHeaders": list(_FROM_AUTH),
        "addAuthCookiesToResponse": [cookie_name(VISIT_COOKIE, secure=route.tls)],
    }


def _labels(route: Route) -> dict[str, str]:
    name = route.name
    router, service = f"traefik.http.routers.{name}", f"traefik.http.services.{name}"
    middleware = f"traefik.http.middlewares.{name}"
    labels = {
        f"{router}.rule": route.rule,
        f"{router}.service": name,
        f"{router}.priority": str(route.priority),
        f"{service}.loadbalancer.server.port": str(route.port),
    }
    for field in CLAIMS:
        labels[f"{middleware}-strip.headers.customrequestheaders.{field}"] = ""
    chain = [f"{name}-strip"]
    if route.auth_address:
        auth = f"{middleware}-auth.forwardauth"
        labels[f"{auth}.address"] = route.auth_address
        labels[f"{auth}.authresponseheaders"] = ",".join(_FROM_AUTH)
        labels[f"{auth}.addauthcookiestoresponse"] = cookie_name(VISIT_COOKIE, secure=route.tls)
        chain.append(f"{name}-auth")
    labels[f"{router}.middlewares"] = ",".join(chain)
    if route.entrypoint:
        labels[f"{router}.entrypoints"] = route.entrypoint
    if route.tls:
        labels[f"{router}.tls"] = "true"
        if route.certresolver:
            labels[f"{router}.tls.certresolver"] = route.certresolver
    return labels
