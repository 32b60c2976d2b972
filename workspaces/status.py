"""Status of a workspace: one table that API, pages and sockets all read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hosts.status import Badge, is_fresh
from workspaces.choices import WorkspaceStatus

if TYPE_CHECKING:
    from datetime import datetime

    from workspaces.models import Workspace

_ALWAYS = ("clone", "delete")
_NOT_BY_HAND = frozenset({"start", "stop", "delete"})
# Nothing comes of these on a disabled host until somebody enables it.
_NEEDS_ITS_HOST = frozenset({"start", "redeploy", "snapshot"})

BADGES = {
    WorkspaceStatus.DEPLOYMENT_PENDING: Badge(
        "deployment_pending", "Deployment pending", "blue", busy=True, actions=("stop", *_ALWAYS)
    ),
    WorkspaceStatus.DEPLOYING: Badge(
        "deploying", "Deploying", "blue", busy=True, actions=("stop", *_ALWAYS)
    ),
    WorkspaceStatus.STARTING: Badge(
        "starting", "Starting", "blue", busy=True, actions=("stop", "redeploy", *_ALWAYS)
    ),
    WorkspaceStatus.RUNNING: Badge(
        "running", "Running", "green", actions=("stop", "redeploy", "snapshot", *_ALWAYS)
    ),
    WorkspaceStatus.STOPPING: Badge(
        "stopping", "Stopping", "amber", busy=True, actions=("start", *_ALWAYS)
    ),
    WorkspaceStatus.STOPPED: Badge(
        "stopped", "Stopped", "grey", actions=("start", "redeploy", *_ALWAYS)
    ),
    WorkspaceStatus.SNAPSHOTTING: Badge(
        "snapshotting", "Snapshotting", "blue", busy=True, actions=_ALWAYS
    ),
    WorkspaceStatus.ERROR: Badge(
        "error", "Error", "red", actions=("start", "stop", "redeploy", *_ALWAYS)
    ),
}


def workspace_status(workspace: Workspace) -> WorkspaceStatus:
    """What the user did counts at once; from there on, what the agent saw."""
    if workspace.observed_revision < workspace.revision and workspace.pending_status:
        return WorkspaceStatus(workspace.pending_status)
    return WorkspaceStatus(workspace.observed_status)


def workspace_badge(workspace: Workspace) -> Badge:
    """Needs `workspace.host` loaded."""
    badge = BADGES[workspace_status(workspace)]
    withheld: frozenset[str] = frozenset()
    if workspace.stack is not None:
        # Whether a service of a stack is there and runs is said by the stack's file.
        withheld |= _NOT_BY_HAND
    if not workspace.host.enabled:
        withheld |= _NEEDS_ITS_HOST
    if not withheld:
        return badge
    return replace(badge, actions=tuple(name for name in badge.actions if name not in withheld))


def workspace_is_fresh(workspace: Workspace, now: datetime) -> bool:
    """Needs `workspace.host` loaded. A silent host's workspaces keep their last status, marked."""
    return is_fresh(workspace.host, now)
