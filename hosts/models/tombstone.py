"""An explicit order to remove one object from a host; kept until the agent has carried it out."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from hosts.choices import TombstoneKind
from hosts.models.host import Host


class Tombstone(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="tombstones")
    kind = models.CharField(max_length=10, choices=TombstoneKind)
    object_id = models.UUIDField()
    name = models.CharField(max_length=255)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "object_id"], name="one_tombstone_per_object")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
