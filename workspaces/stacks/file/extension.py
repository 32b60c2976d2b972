"""Reads a service's x-trailer: what Compose has no word for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workspaces.choices import UrlAuth
from workspaces.stacks.file import values
from workspaces.stacks.file.types import DomainSpec
from workspaces.validation.fields import MAX_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.protocol.spec import PortSpec
    from workspaces.stacks.file.nodes import Item

_KEYS: Final = (
    "domain",
    "port",
    "tls",
    "auth",
    "update_policy",
    "startup_timeout",
    "drain_timeout",
    "shared_volumes",
)
_POLICIES: Final = ("always", "if_missing")
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class Extension:
    domains: tuple[DomainSpec, ...] = ()
    update_policy: str = "always"
    startup_timeout: int = 60
    drain_timeout: int = 10
    shared_volumes: bool = False


def read_extension(item: Item | None, ports: Sequence[PortSpec], expose: Item | None) -> Extension:
    exposed = _exposed(expose) if expose else []
    if item is None or item.is_null:
        return Extension()
    known = item.known(_KEYS)
    return Extension(
        domains=_domains(known, ports, exposed),
        update_policy=known["update_policy"].choice(_POLICIES)
        if "update_policy" in known
        else "always",
        startup_timeout=max(1, values.whole_seconds(known["startup_timeout"], most=MAX_TIMEOUT))
        if "startup_timeout" in known
        else 60,
        drain_timeout=values.whole_seconds(known["drain_timeout"], most=MAX_TIMEOUT)
        if "drain_timeout" in known
        else 10,
        shared_volumes="shared_volumes" in known and known["shared_volumes"].boolean(),
    )


def _exposed(item: Item) -> list[int]:
    return [entry.integer(1, _MAX_PORT) for entry in item.entries()]


def _domains(
    known: dict[str, Item], ports: Sequence[PortSpec], exposed: Sequence[int]
) -> tuple[DomainSpec, ...]:
    item = known.get("domain")
    if item is None:
        for key in ("port", "tls", "auth"):
            if key in known:
                raise known[key].wrong("says nothing without domain")
        return ()
    names = item.texts() if item.is_list else (item.text(),)
    if not names or not all(name.strip() for name in names):
        raise item.wrong("must be a domain, for example app.example.com, or a list of them")
    port = _port(known, item, ports, exposed)
    return tuple(
        DomainSpec(
            host_name=name.strip().lower() if "${" not in name else name.strip(),
            port=port,
            tls="tls" in known and known["tls"].boolean(),
            auth=known["auth"].choice(UrlAuth.values) if "auth" in known else UrlAuth.PUBLIC.value,
        )
        for name in names
    )


def _port(
    known: dict[str, Item], domain: Item, ports: Sequence[PortSpec], exposed: Sequence[int]
) -> int:
    if "port" in known:
        return known["port"].integer(1, _MAX_PORT)
    candidates = {*exposed, *(port.container_port for port in ports if port.protocol == "tcp")}
    if len(candidates) != 1:
        raise domain.wrong("needs port beside it: the container's port that serves the domain")
    return candidates.pop()
