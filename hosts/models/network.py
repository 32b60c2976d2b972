"""A network on one host."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.choices import NetworkDriver, ResourceStatus
from hosts.models.host import Host
from trailer.visibility import VisibleManager


class Network(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="networks")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="networks",
        editable=False,
    )
    driver = models.CharField(max_length=10, choices=NetworkDriver, default=NetworkDriver.BRIDGE)
    internal = models.BooleanField(default=False)
    parent_interface = models.CharField(max_length=64, blank=True)
    subnet = models.CharField(max_length=64, blank=True)
    gateway = models.CharField(max_length=64, blank=True)
    ip_range = models.CharField(max_length=64, blank=True)
    # With chosen addresses it goes with its owner's capability; what is older does not.
    rests_on_capability = models.BooleanField(default=False, editable=False)
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Observed: written only by ingest.
    status = models.CharField(
        max_length=10, choices=ResourceStatus, default=ResourceStatus.PENDING, editable=False
    )
    message = models.TextField(blank=True, editable=False)
    engine_id = models.CharField(max_length=128, blank=True, editable=False)
    observed_at = models.DateTimeField(null=True, blank=True, editable=False)
    report_epoch = models.PositiveBigIntegerField(default=0, editable=False)
    report_seq = models.PositiveBigIntegerField(default=0, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["host", "name"], name="network_name_per_host")
        ]

    def __str__(self) -> str:
        return self.name
