"""The GPU ledger: which card of a host is in which workspace's hands."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from hosts.models import Host
from workspaces.choices import DesiredState, WorkspaceStatus
from workspaces.models.workspace import Workspace

# A stopped workspace's row says which card it had, and would like again; it holds nothing.
_AT_REST = (WorkspaceStatus.STOPPED, WorkspaceStatus.DEPLOYMENT_PENDING)


class GpuHoldQuerySet(models.QuerySet["GpuHold"]):
    def active(self) -> GpuHoldQuerySet:
        """In force: the workspace should run, or its container has not been seen to end yet."""
        ended = Q(workspace__container_id="") | Q(workspace__observed_status__in=_AT_REST)
        return self.exclude(Q(workspace__desired_state=DesiredState.STOPPED) & ended)


class GpuHold(models.Model):
    """Written under the host's lock, together with the workspace's desired state."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="gpu_holds")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="gpu_holds")
    gpu = models.CharField(max_length=128)
    shared = models.BooleanField(default=False)

    objects = GpuHoldQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["gpu"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "gpu"], name="gpu_once_per_workspace")
        ]

    def __str__(self) -> str:
        return f"{self.gpu} of {self.workspace_id}"

    @property
    def is_active(self) -> bool:
        """The same rule as the queryset's, for a row that was read with its workspace."""
        workspace = self.workspace
        if workspace.desired_state != DesiredState.STOPPED:
            return True
        return bool(workspace.container_id) and workspace.observed_status not in _AT_REST
