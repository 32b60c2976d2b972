"""A new agent image brought to the fleet in waves, and what became of it on each host."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from hosts.choices import RolloutHostStatus, RolloutStatus
from hosts.models.host import Host


class AgentRollout(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    image = models.CharField(max_length=255)
    status = models.CharField(max_length=10, choices=RolloutStatus, default=RolloutStatus.RUNNING)
    message = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["status"], condition=Q(status="running"), name="one_rollout_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return self.image


class RolloutHost(models.Model):
    rollout = models.ForeignKey(AgentRollout, on_delete=models.CASCADE, related_name="hosts")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="+")
    wave = models.PositiveSmallIntegerField()
    status = models.CharField(
        max_length=10, choices=RolloutHostStatus, default=RolloutHostStatus.WAITING
    )
    previous_image = models.CharField(max_length=255, blank=True)
    ordered_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["wave", "host__name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rollout", "host"], name="one_row_per_rollout_host")
        ]

    def __str__(self) -> str:
        return f"{self.host_id} in wave {self.wave}"
