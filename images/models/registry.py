"""A registry credential, sent only to that exact server, and the newest try of it."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.models import Host
from images.choices import RegistryStatus
from trailer.sealed import SealedField
from trailer.visibility import VisibleManager


class Registry(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    server = models.CharField(max_length=255)
    username = models.CharField(max_length=255, blank=True)
    # Encrypted; never leaves the server but in the state document of a host that pulls with it.
    password_token = SealedField(blank=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="registries",
        editable=False,
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["server", "username"]
        verbose_name_plural = "registries"

    def __str__(self) -> str:
        return f"{self.username}@{self.server}" if self.username else self.server


class RegistryTest(models.Model):
    """Made by the engine of one host, as a pull would be; a new one takes its place."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    registry = models.OneToOneField(Registry, on_delete=models.CASCADE, related_name="test")
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="registry_tests")
    created_at = models.DateTimeField(auto_now_add=True)

    # Observed: written only by ingest.
    status = models.CharField(
        max_length=10, choices=RegistryStatus, default=RegistryStatus.TESTING, editable=False
    )
    message = models.TextField(blank=True, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"test of {self.registry_id} on {self.host_id}"
