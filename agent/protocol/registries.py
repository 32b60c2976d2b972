"""Which registries an engine may be sent to for a member: the server refuses by it what can be
read off a name, agents ask the registry itself before the engine does. Pure.

Docker Hub is the engine's own default, whatever mirrors or proxies it has for that, and no text of
a member's decides where it is: it is never judged.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from agent.protocol import image_refs
from agent.protocol.addresses import BadEntry, BadHost, Place, allows, host_name, literal_refused

if TYPE_CHECKING:
    from agent.protocol.state import DesiredImage, HostState

SETTING: Final = "TRAILER_REGISTRY_ALLOW"
HOW_TO_ALLOW: Final = f"An administrator can list it in {SETTING}, or store the registry."
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True)
class RegistryRule:
    """`allow`: entries as `agent.protocol.addresses` describes them. `trusted`: servers that an
    administrator stored, by exactly their name and port."""

    allow: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()

    def trusts(self, server: str) -> bool:
        """True if the server may be anywhere; a network in `allow` opens addresses instead.
        Raises BadEntry."""
        if image_refs.server_key(server) == image_refs.DOCKER_HUB:
            return True
        if any(image_refs.is_same_server(server, other) for other in self.trusted):
            return True
        try:
            places = [_place(server, scheme) for scheme in _PORTS]
        except BadHost:
            return False
        return any(
            place.host in self.allow or allows(self.allow, place, (), plain=True)
            for place in places
        )

    def problem(self, server: str) -> str:
        """Why this server is not asked, as far as its name tells; empty if it may be."""
        try:
            if self.trusts(server):
                return ""
            is_refused = literal_refused(self.allow, _place(server, "https"))
        except BadEntry as error:
            return f"{SETTING} has an entry that means nothing: {error}."
        except BadHost as error:
            return f"The registry {server} has no valid host. {error}"
        if is_refused:
            return f"The registry {server} is not an address of the internet. {HOW_TO_ALLOW}"
        return ""


def rule_of(state: HostState) -> RegistryRule | None:
    """None: a server of an earlier version, which says nothing about it."""
    if state.settings.registry_allow is None:
        return None
    return RegistryRule(allow=state.settings.registry_allow, trusted=state.trusted_registries)


def rule_for(state: HostState, image: DesiredImage) -> RegistryRule | None:
    """None also for what an administrator chose."""
    return None if image.trusted_source else rule_of(state)


def host_of(server: str) -> str:
    """Raises BadHost."""
    return _place(server, "https").host


def _place(server: str, scheme: str) -> Place:
    try:
        parts = urlsplit(f"//{server}")
        host, port = parts.hostname or "", parts.port
        # A name in brackets is none.
        if parts.netloc.startswith("["):
            ipaddress.IPv6Address(host)
    except ValueError as error:
        raise BadHost(f"{server[:80]} is no host with a port.") from error
    return Place(scheme, host_name(host), port or _PORTS[scheme])
