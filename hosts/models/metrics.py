"""How busy hosts and GPUs were: one row per sample, thinned out with age; and the latest values.

Times are whole seconds since 1970 by the server's clock: an agent's clock may be wrong, and whole
numbers are grouped alike by every database.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from hosts.models.host import Host


class Sample(models.Model):
    """`resolution`: seconds that a row stands for; 0 is one heartbeat."""

    resolution = models.PositiveSmallIntegerField()
    at = models.BigIntegerField()

    class Meta:
        abstract = True


class HostSample(Sample):
    pk = models.CompositePrimaryKey("host_id", "resolution", "at")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="+", db_index=False)
    cpu_percent = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    disk_used_bytes = models.BigIntegerField(null=True)
    disk_total_bytes = models.BigIntegerField(null=True)
    disk_read_rate = models.BigIntegerField(null=True)
    disk_write_rate = models.BigIntegerField(null=True)
    network_rx_rate = models.BigIntegerField(null=True)
    network_tx_rate = models.BigIntegerField(null=True)
    load = models.FloatField(null=True)
    processes = models.IntegerField(null=True)

    def __str__(self) -> str:
        return f"host {self.host_id} at {self.at}"


class GpuSample(Sample):
    pk = models.CompositePrimaryKey("host_id", "gpu", "resolution", "at")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="+", db_index=False)
    # The card's own id.
    gpu = models.CharField(max_length=64)
    utilization_percent = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    temperature_celsius = models.FloatField(null=True)
    power_watts = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"GPU {self.gpu} at {self.at}"


class HostUsage(models.Model):
    """The newest sample of everything on a host, for bars: one row, written with each one."""

    host = models.OneToOneField(
        Host, on_delete=models.CASCADE, primary_key=True, related_name="usage"
    )
    at = models.DateTimeField()
    cpu_percent = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    disk_used_bytes = models.BigIntegerField(null=True)
    disk_total_bytes = models.BigIntegerField(null=True)
    load = models.FloatField(null=True)
    # Workspace id -> [cpu_percent, memory_bytes, memory_limit_bytes].
    workspaces = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"usage of {self.host_id}"


class RollupMark(models.Model):
    """Up to which moment the samples of a family are gathered into rows of a resolution."""

    family = models.CharField(max_length=16)
    resolution = models.PositiveSmallIntegerField()
    until = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["family", "resolution"], name="one_mark_per_rollup")
        ]

    def __str__(self) -> str:
        return f"{self.family} by {self.resolution} s"
