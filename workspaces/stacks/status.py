"""Status of a stack: one table that API, pages and sockets all read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hosts.status import Badge
from workspaces.stacks.choices import StackStatus

if TYPE_CHECKING:
    from workspaces.stacks.models import Stack

_ALWAYS = ("deploy", "sync", "rollback", "delete")
_NEEDS_ITS_HOST = frozenset({"deploy", "sync", "rollback"})

BADGES = {
    StackStatus.PENDING: Badge("pending", "Pending", "blue", busy=True, actions=_ALWAYS),
    StackStatus.SYNCING: Badge("syncing", "Syncing", "blue", busy=True, actions=_ALWAYS),
    StackStatus.SYNCED: Badge("synced", "Synced", "green", actions=_ALWAYS),
    StackStatus.FAILED: Badge("failed", "Failed", "red", actions=_ALWAYS),
    StackStatus.OUT_OF_SYNC: Badge("out_of_sync", "Out of sync", "amber", actions=_ALWAYS),
}


def stack_badge(stack: Stack) -> Badge:
    """Needs `stack.host` loaded."""
    badge = BADGES[StackStatus(stack.status)]
    withheld: frozenset[str] = frozenset()
    if stack.deployed_id is None:
        # Nothing was ever deployed, so there is nothing to go back to.
        withheld |= {"rollback"}
    if not stack.host.enabled:
        withheld |= _NEEDS_ITS_HOST
    if not withheld:
        return badge
    return replace(badge, actions=tuple(name for name in badge.actions if name not in withheld))
