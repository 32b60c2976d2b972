"""How busy workspaces were: one row per sample, thinned out with age."""

from __future__ import annotations

from django.db import models

from hosts.models import Sample
from workspaces.models.workspace import Workspace


class WorkspaceSample(Sample):
    pk = models.CompositePrimaryKey("workspace_id", "resolution", "at")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    cpu_percent = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    memory_limit_bytes = models.BigIntegerField(null=True)
    disk_read_rate = models.BigIntegerField(null=True)
    disk_write_rate = models.BigIntegerField(null=True)
    network_rx_rate = models.BigIntegerField(null=True)
    network_tx_rate = models.BigIntegerField(null=True)
    processes = models.IntegerField(null=True)
    # A mean over minutes is a fraction: somebody who was there shortly must not become nobody.
    connections = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"workspace {self.workspace_id} at {self.at}"
