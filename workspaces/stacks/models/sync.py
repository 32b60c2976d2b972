"""One sync of a stack: why it ran, how far it came, what it said."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from trailer.visibility import VisibleManager
from workspaces.stacks.choices import Phase, SyncOutcome, Trigger
from workspaces.stacks.models.revision import StackRevision
from workspaces.stacks.models.stack import Stack


class Sync(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="syncs")
    number = models.PositiveIntegerField()
    trigger = models.CharField(max_length=10, choices=Trigger)
    # No quick check, and images are pulled again.
    forced = models.BooleanField(default=False)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # What a rollback goes back to.
    target = models.ForeignKey(
        StackRevision, null=True, on_delete=models.CASCADE, related_name="+"
    )
    phase = models.CharField(max_length=12, choices=Phase, default=Phase.QUEUED)
    # Since when it has been in this phase: what limits are counted from.
    phase_at = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=0)
    # What is being deployed.
    revision = models.ForeignKey(
        StackRevision, null=True, on_delete=models.SET_NULL, related_name="syncs"
    )
    commit = models.CharField(max_length=64, blank=True)
    author = models.CharField(max_length=255, blank=True)
    commit_message = models.TextField(blank=True)
    # Sentences: what this revision changes.
    diff = models.JSONField(default=list)
    log = models.TextField(blank=True)
    outcome = models.CharField(
        max_length=10, choices=SyncOutcome, default=SyncOutcome.UNDER_WAY, blank=True
    )
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stack", "number"], name="sync_number_per_stack"),
            models.UniqueConstraint(
                fields=["stack"], condition=Q(phase="queued"), name="one_queued_sync_per_stack"
            ),
            models.UniqueConstraint(
                fields=["stack"],
                condition=~Q(phase__in=["queued", "done"]),
                name="one_running_sync_per_stack",
            ),
        ]

    def __str__(self) -> str:
        return f"sync {self.number} of {self.stack_id}"
