"""An image on one host: built from a Dockerfile, pulled, or a snapshot of a workspace."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.models import Host
from images.choices import BuildStatus, ImageKind, UpdatePolicy
from images.models.registry import Registry
from trailer.visibility import VisibleManager


class Image(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=128)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="images")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="images", editable=False
    )
    kind = models.CharField(max_length=10, choices=ImageKind, default=ImageKind.PULL)
    dockerfile = models.TextField(blank=True)
    files = models.JSONField(default=list, blank=True)
    build_args = models.JSONField(default=dict, blank=True)
    target = models.CharField(max_length=128, blank=True)
    pull_base = models.BooleanField(default=False)
    reference = models.CharField(max_length=512, blank=True)
    registry = models.ForeignKey(
        Registry, null=True, blank=True, on_delete=models.PROTECT, related_name="images"
    )
    update_policy = models.CharField(
        max_length=12, choices=UpdatePolicy, default=UpdatePolicy.IF_MISSING
    )
    # Who last said what it is made from, where that is not the owner: their rights count too.
    source_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    # It was fetched with a credential that it no longer has: others must ask the registry still.
    is_private = models.BooleanField(default=False, editable=False)
    push = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    # Id of the workspace a snapshot was taken of; kept when that workspace is gone.
    source_workspace = models.UUIDField(null=True, blank=True, editable=False, db_index=True)
    # Who took the snapshot; it belongs to the workspace's owner.
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    # Id of the image that workspace ran at that time; kept when that image is gone.
    source_image = models.UUIDField(null=True, blank=True, editable=False)
    # Counts requests to compare with the registry now; a new number asks the agent for one look.
    check_requested = models.PositiveIntegerField(default=0, editable=False)
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Observed: written only by ingest.
    digest = models.CharField(max_length=255, blank=True, editable=False)
    engine_id = models.CharField(max_length=128, blank=True, editable=False)
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    available_digest = models.CharField(max_length=255, blank=True, editable=False)
    observed_at = models.DateTimeField(null=True, blank=True, editable=False)
    report_epoch = models.PositiveBigIntegerField(default=0, editable=False)
    report_seq = models.PositiveBigIntegerField(default=0, editable=False)
    # Copied from the newest build, so lists need no join; moved only together with it.
    status = models.CharField(
        max_length=10, choices=BuildStatus, default=BuildStatus.PENDING, editable=False
    )
    message = models.TextField(blank=True, editable=False)
    progress = models.PositiveSmallIntegerField(null=True, blank=True, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["host", "name"], name="image_name_per_host")
        ]

    def __str__(self) -> str:
        return self.name
