"""The order of locks: host first, then workspace; every change of desired state takes them so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts.models import Host
from trailer.errors import Invalid
from trailer.revisions import check_revision
from workspaces.models import Workspace
from workspaces.selectors import workspace_get

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.policy import Actor


def host_lock(actor: Actor, host_id: UUID) -> Host:
    """Names, host ports and addresses are checked, then written: one writer a host at a time."""
    host = Host.objects.visible_to(actor).select_for_update().filter(pk=host_id).first()
    if host is None:
        raise Invalid.field("host", "There is no such host, or you may not see it.")
    return host


def workspace_lock(workspace: Workspace, *, expected_revision: int | None) -> Workspace:
    """The row as it is now, with its parts; refuses when it is not what the caller saw."""
    list(Host.objects.select_for_update().filter(pk=workspace.host_id).values_list("pk"))
    list(Workspace.objects.select_for_update().filter(pk=workspace.pk).values_list("pk"))
    current = workspace_get(workspace.pk)
    check_revision(current.revision, expected_revision)
    return current
