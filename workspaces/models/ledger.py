"""The ledger: why each thing happened to a workspace, and every revision of its spec."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from trailer.sealed import SealedField
from workspaces.models.workspace import Workspace


class Event(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    received_at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=32)
    cause = models.TextField()
    # [{field, from, to, effect}], secrets masked.
    changes = models.JSONField(default=list)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # Who it was when it was no person: schedule, idle.
    actor_name = models.CharField(max_length=32, blank=True)
    revision = models.PositiveIntegerField(null=True)
    cycle = models.PositiveBigIntegerField(null=True)
    # Set on the agent's events: the same report sent twice makes one row.
    report_epoch = models.PositiveBigIntegerField(null=True)
    report_seq = models.PositiveBigIntegerField(null=True)
    # Equal ends of a container that followed each other are one row: how many, and the last one.
    count = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField(null=True)
    # {code, signal, oom} of a container's end; beside crashed and restarted also of a heal.
    exit = models.JSONField(null=True)
    # Redacted by the agent; shown to who may read the logs.
    health_output = models.TextField(blank=True, default="")
    last_lines = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-received_at", "-report_epoch", "-report_seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "report_epoch", "report_seq"], name="one_event_per_report"
            )
        ]
        # The dashboard asks for the newest of all.
        indexes: ClassVar = [models.Index(fields=["-received_at"], name="newest_events")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.cause}"


class Revision(models.Model):
    """The writable fields as they were at one revision; secret values stay encrypted."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="revisions")
    revision = models.PositiveIntegerField()
    # API shape of the writable fields, without secret_env.
    fields = models.JSONField()
    secret_env_token = SealedField(of=("workspace_id", "revision"), blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    # Of the event that was written with it: lists leave out those that only start or stop.
    kind = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-revision"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "revision"], name="revision_once")
        ]

    def __str__(self) -> str:
        return f"revision {self.revision} of {self.workspace_id}"
