"""How many sessions may be open at once: per workspace, per user, in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol.sessions import BUSY, LOGS
from agent.sessions.containers import Refused

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent.protocol.sessions import SessionOpen

TERMINALS_PER_WORKSPACE: Final = 10
LOGS_PER_WORKSPACE: Final = 20
PER_USER: Final = 20
IN_ALL: Final = 200


@dataclass(frozen=True)
class Place:
    """What one session counts against."""

    is_log: bool
    workspace_id: str
    user: str


def place_of(request: SessionOpen) -> Place:
    return Place(request.kind == LOGS, request.workspace_id, request.user)


def check(place: Place, taken: Collection[Place]) -> None:
    """Raises when there is no room for one more."""
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
