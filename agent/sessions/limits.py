"""How many sessions may be open at once: per workspace, per user, in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol.sessions import BUSY, LAYER, LOGS, PROXY
from agent.sessions.containers import Refused

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent.protocol.sessions import SessionOpen

TERMINALS_PER_WORKSPACE: Final = 10
LOGS_PER_WORKSPACE: Final = 20
PER_USER: Final = 20
IN_ALL: Final = 200
PROXIES_PER_WORKSPACE: Final = 128
PROXIES_IN_ALL: Final = 512
LOOKS_IN_ALL: Final = 64


@dataclass(frozen=True)
class Place:
    """What one session counts against."""

    is_log: bool
    workspace_id: str
    user: str
    is_proxy: bool = False
    # Over in seconds, and bounded where it works.
    is_look: bool = False


def place_of(request: SessionOpen) -> Place:
    return Place(
        request.kind == LOGS,
        request.workspace_id,
        request.user,
        is_proxy=request.kind == PROXY,
        is_look=request.kind == LAYER,
    )


def check(place: Place, taken: Collection[Place]) -> None:
    """Raises when there is no room for one more."""
    if place.is_look:
        _check_look(taken)
        return
    if place.is_proxy:
        _check_proxy(place, taken)
        return
    taken = [p for p in taken if not (p.is_proxy or p.is_look)]
    alike = [p for p in taken if (p.is_log, p.workspace_id) == (place.is_log, place.workspace_id)]
    most = LOGS_PER_WORKSPACE if place.is_log else TERMINALS_PER_WORKSPACE
    if len(alike) >= most:
        what = "log viewers" if place.is_log else "terminals"
        raise Refused(
            f"This workspace has {most} open {what} already. Close one and try again.", BUSY
        )
    if sum(p.user == place.user for p in taken) >= PER_USER:
        raise Refused(
            f"You have {PER_USER} open sessions on this host already. Close one and try again.",
            BUSY,
        )
    if len(taken) >= IN_ALL:
        raise Refused(
            f"This host has {IN_ALL} open sessions already. Try again in a moment.", BUSY
        )


def _check_proxy(place: Place, taken: Collection[Place]) -> None:
    """Connections to workspaces' URLs: browsers open several, and nobody waits at a prompt."""
    proxies = [p for p in taken if p.is_proxy]
    alike = sum(p.workspace_id == place.workspace_id for p in proxies)
    if alike >= PROXIES_PER_WORKSPACE or len(proxies) >= PROXIES_IN_ALL:
        raise Refused("Too many connections are open to this workspace. Try again soon.", BUSY)


def _check_look(taken: Collection[Place]) -> None:
    """Each holds a thread; a stack asks about all its services at once."""
    if sum(p.is_look for p in taken) >= LOOKS_IN_ALL:
        raise Refused("Many containers are looked at just now. Try again in a moment.", BUSY)
