"""May this caller have this session, and where is it: asked at the start and again while open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from agent.protocol.sessions import CAPABILITY, LOGS
from hosts.status import host_status, is_out_of_reach
from trailer import policy
from trailer.audit.record import record
from trailer.errors import NotAllowed, NotFound, Unavailable
from workspaces.models import Workspace

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.accounts.models import User
    from trailer.context import Origin

_READING: Final = frozenset({LOGS})


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a workspace's agent is; `epoch` is the agent's newest session."""

    workspace_id: UUID
    host_id: UUID
    host_name: str
    epoch: int


def session_place(user: User, workspace_id: UUID, kind: str, *, may_write: bool = True) -> Place:
    """Raises NotFound, NotAllowed or Unavailable with the reason."""
    workspace = session_workspace(user, workspace_id, kind, may_write=may_write)
    host = workspace.host
    now = timezone.now()
    if is_out_of_reach(host, now):
        label = host_status(host, now).label.lower()
        raise Unavailable(f"Host {host.name} is {label}. Try again when its agent is connected.")
    # Empty until the first heartbeat that knows the engine.
    if host.capabilities and CAPABILITY not in host.capabilities:
        raise Unavailable(f"The agent of host {host.name} is too old for this. Update it.")
    return Place(workspace_id=workspace.pk, host_id=host.pk, host_name=host.name, epoch=host.epoch)


def session_noted(user: User, workspace_id: UUID, action: str, where: Origin) -> None:
    """In the audit, by name as long as the workspace is there."""
    workspace = Workspace.objects.filter(pk=workspace_id).first()
    record(action, workspace, actor=user, where=where)


def session_workspace(
    user: User, workspace_id: UUID, kind: str, *, may_write: bool = True
) -> Workspace:
    rows = Workspace.objects.visible_to(user).select_related("host")
    workspace = rows.filter(pk=workspace_id).first()
    if workspace is None:
        raise NotFound("There is no such workspace, or you may not see it.")
    policy.require(user, f"workspace.{kind}", workspace)
    if kind not in _READING and not may_write:
        raise NotAllowed("This token may only read. Use one that may write.")
    return workspace
