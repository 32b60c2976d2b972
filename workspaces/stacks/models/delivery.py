"""A webhook delivery that led to a sync: the same one does not lead to another."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from workspaces.stacks.models.stack import Stack
from workspaces.stacks.models.sync import Sync


class WebhookDelivery(models.Model):
    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="deliveries")
    # What it is known by: a digest of the sender's number, or of the signed body.
    mark = models.CharField(max_length=64)
    # None when that sync is so old that its row is gone.
    sync = models.ForeignKey(Sync, null=True, on_delete=models.SET_NULL, related_name="+")
    received_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-received_at"]
        verbose_name_plural = "webhook deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stack", "mark"], name="delivery_once_per_stack")
        ]

    def __str__(self) -> str:
        return f"delivery of {self.received_at:%Y-%m-%d %H:%M}"
