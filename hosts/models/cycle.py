"""Recent cycles of a host's agent, with their steps."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from hosts.models.host import Host


class Cycle(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="cycles")
    epoch = models.PositiveBigIntegerField()
    number = models.PositiveBigIntegerField()
    trigger = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    outcome = models.CharField(max_length=32)
    cleanup = models.CharField(max_length=16)
    engine_calls = models.PositiveIntegerField(default=0)
    steps = models.JSONField(default=list)
    message = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-epoch", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["host", "epoch", "number"], name="one_row_per_cycle")
        ]

    def __str__(self) -> str:
        return f"cycle {self.number} of {self.host_id}"
