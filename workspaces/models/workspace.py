"""A workspace: its desired spec, and what its host's agent last observed."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.models import Host, Network
from images.models import Image
from trailer.visibility import VisibleManager
from workspaces.choices import DesiredState, WorkspaceStatus


class Workspace(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    description = models.TextField(blank=True)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="workspaces")
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="workspaces")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="workspaces",
        editable=False,
    )
    desired_state = models.CharField(
        max_length=10, choices=DesiredState, default=DesiredState.RUNNING
    )
    command = models.JSONField(default=list, blank=True)
    cpus = models.DecimalField(max_digits=8, decimal_places=3, null=True, blank=True)
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    shm_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    # The wish: empty, or the API's object with count or device_ids. GpuHold has what it got.
    gpus = models.JSONField(default=dict, blank=True)
    nested_virtualization = models.BooleanField(default=False)
    networks = models.ManyToManyField(Network, blank=True, related_name="workspaces")
    # Empty, or the API's object.
    health_check = models.JSONField(default=dict, blank=True)
    startup_timeout = models.PositiveIntegerField(default=60, help_text="Seconds.")
    drain_timeout = models.PositiveIntegerField(default=10, help_text="Seconds.")
    shared_volumes = models.BooleanField(
        default=False,
        help_text="Its program can share its volumes with a second copy of itself.",
    )
    # What these two come to, and when, is in Timer.
    idle_stop_minutes = models.PositiveIntegerField(null=True, blank=True)
    # Empty, or cron lines under start and stop.
    schedule = models.JSONField(default=dict, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    # By whose right it has its image, its privileged settings and its place on the host
    # (workspaces/rights.py); empty: the owner's.
    image_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    privileged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    placed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    # The image's owner put the workspace out: it stays down until it has another image.
    image_evicted = models.BooleanField(default=False, editable=False)
    # Counts redeploy requests.
    generation = models.PositiveIntegerField(default=0, editable=False)
    stack = models.UUIDField(null=True, blank=True, editable=False, db_index=True)
    service = models.CharField(max_length=63, blank=True, editable=False)
    revision = models.PositiveIntegerField(default=1, editable=False)
    # Status to show until the agent has seen this revision; empty when the change is too small
    # to matter. Written by user services together with the revision.
    pending_status = models.CharField(
        max_length=20,
        choices=WorkspaceStatus,
        default=WorkspaceStatus.DEPLOYMENT_PENDING,
        blank=True,
        editable=False,
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Observed: written only by ingest.
    observed_status = models.CharField(
        max_length=20,
        choices=WorkspaceStatus,
        default=WorkspaceStatus.DEPLOYMENT_PENDING,
        editable=False,
    )
    message = models.TextField(blank=True, editable=False)
    observed_at = models.DateTimeField(null=True, blank=True, editable=False)
    observed_revision = models.PositiveIntegerField(default=0, editable=False)
    container_id = models.CharField(max_length=64, blank=True, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    restart_count = models.PositiveIntegerField(default=0, editable=False)
    health = models.CharField(max_length=20, blank=True, editable=False)
    exit_code = models.IntegerField(null=True, blank=True, editable=False)
    report_epoch = models.PositiveBigIntegerField(default=0, editable=False)
    report_seq = models.PositiveBigIntegerField(default=0, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["host", "name"], name="workspace_name_per_host")
        ]

    def __str__(self) -> str:
        return self.name
