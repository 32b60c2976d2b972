"""One build or pull of an image, and its output in chunks."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from images.choices import BuildStatus, BuildTrigger
from images.models.image import Image
from trailer.visibility import VisibleManager


class Build(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="builds")
    # Counts the builds of one image from 1; the highest is the current one.
    number = models.PositiveIntegerField()
    trigger = models.CharField(max_length=12, choices=BuildTrigger)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    cancel_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    # Observed: written only by ingest (a cancel before the agent has begun is the one exception).
    status = models.CharField(
        max_length=10, choices=BuildStatus, default=BuildStatus.PENDING, editable=False
    )
    message = models.TextField(blank=True, editable=False)
    progress = models.PositiveSmallIntegerField(null=True, blank=True, editable=False)
    digest = models.CharField(max_length=255, blank=True, editable=False)
    engine_id = models.CharField(max_length=128, blank=True, editable=False)
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Bytes received so far; the agent continues from here.
    log_bytes = models.PositiveBigIntegerField(default=0, editable=False)
    # How many there will be, as the agent said when it ended; unknown until then.
    log_expected = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    report_epoch = models.PositiveBigIntegerField(default=0, editable=False)
    report_seq = models.PositiveBigIntegerField(default=0, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["image", "number"], name="build_number_per_image")
        ]

    def __str__(self) -> str:
        return f"build {self.number} of {self.image_id}"


class BuildLogChunk(models.Model):
    """Bytes [offset, offset + len(data)) of a build's output; gaps only where it was trimmed."""

    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="chunks")
    offset = models.PositiveBigIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["offset"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["build", "offset"], name="one_chunk_per_offset")
        ]

    def __str__(self) -> str:
        return f"{self.build_id} at {self.offset}"
