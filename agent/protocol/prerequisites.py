"""Containers that the platform itself needs on a host: the router, the NVIDIA ones."""

from __future__ import annotations

from typing import Final

import msgspec

from agent.protocol.spec import PortSpec

ROUTER: Final = "router"
# Its own network, where the operator named none: each workspace then has a link of its own to it.
ROUTER_NETWORK: Final = "trailer.router"
# Every engine has these; a container is on one of them without a name, or has no network at all.
_ENGINES_OWN: Final = frozenset({"bridge", "default", "host", "none"})
# Where the router looks for its routes.
ROUTES_FOLDER: Final = "/etc/trailer"
NVIDIA_DRIVER: Final = "nvidia-driver"
NVIDIA_TOOLKIT: Final = "nvidia-toolkit"


def network_problem(name: str) -> str:
    """Why a router and what it serves cannot meet on the network of that name, or empty."""
    if name not in _ENGINES_OWN:
        return ""
    return (
        f"The network {name} is the engine's own, which no container can join under a name. "
        "Name another network, or none: a managed router then gets one of its own."
    )


class PrerequisiteMount(msgspec.Struct, frozen=True, kw_only=True):
    """`source` is a path of the host for kind `bind`, made if it is not there; the name of a
    volume otherwise. `propagation` is the engine's word, for example shared."""

    target: str
    source: str
    kind: str = "bind"
    read_only: bool = False
    propagation: str = ""


class PrerequisiteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`network` is a network of the engine by its name; made if it is not there."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    ports: tuple[PortSpec, ...] = ()
    mounts: tuple[PrerequisiteMount, ...] = ()
    network: str = ""
    privileged: bool = False
    host_pid: bool = False


class DesiredPrerequisite(msgspec.Struct, frozen=True, kw_only=True):
    """One for each kind. Any difference in image or spec replaces the container."""

    kind: str
    image: str
    spec: PrerequisiteSpec = PrerequisiteSpec()
