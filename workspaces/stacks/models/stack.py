"""A stack: one repository, branch and path whose file says what runs on one host."""

from __future__ import annotations

import hashlib
import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.models import Host
from trailer.sealed import SealedField
from trailer.visibility import VisibleManager
from workspaces.stacks.choices import StackStatus


class Stack(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=40)
    description = models.TextField(blank=True)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="stacks")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="stacks", editable=False
    )
    repository = models.CharField(max_length=1024)
    branch = models.CharField(max_length=255, default="main")
    path = models.CharField(max_length=512, blank=True, help_text="Folder of the stack file.")
    # Who last changed the three or the credential; None when that user is gone.
    source_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    poll_interval = models.PositiveIntegerField(
        default=300, help_text="Seconds between two looks at the repository; 0 turns them off."
    )
    enabled = models.BooleanField(default=True)
    # Encrypted: the credential as JSON, the webhook's secret, the secret variables as JSON.
    credential_token = SealedField(blank=True, editable=False)
    webhook_secret_token = SealedField(blank=True, editable=False)
    secret_variables_token = SealedField(blank=True, editable=False)
    # The age key that trailer.vars.yml is encrypted for: its private half encrypted, and the half
    # that everybody may have.
    identity_token = SealedField(editable=False)
    recipient = models.CharField(max_length=128, editable=False)
    variables = models.JSONField(default=dict, blank=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    # Set by a rollback: nothing newer is deployed until somebody deploys.
    pinned = models.BooleanField(default=False, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Written only by syncs.
    status = models.CharField(
        max_length=12, choices=StackStatus, default=StackStatus.PENDING, editable=False
    )
    message = models.TextField(blank=True, editable=False)
    deployed = models.ForeignKey(
        "stacks.StackRevision",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    deployed_commit = models.CharField(max_length=64, blank=True, editable=False)
    available_commit = models.CharField(max_length=64, blank=True, editable=False)
    # The commit whose services came up badly: a poll does not try it again, a person may.
    failed_commit = models.CharField(max_length=64, blank=True, editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # When a quick check last had the host ask the registries of the stack's images.
    registries_asked_at = models.DateTimeField(null=True, blank=True, editable=False)

    # The queue. `due_at`: when the next step of an open sync may run; `poll_at`: the next look.
    due_at = models.DateTimeField(null=True, blank=True, editable=False, db_index=True)
    poll_at = models.DateTimeField(null=True, blank=True, editable=False, db_index=True)
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["host", "name"], name="stack_name_per_host")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Where the files come from, as one mark that can be compared."""
        places = "\0".join((self.repository, self.branch, self.path))
        return hashlib.sha256(places.encode()).hexdigest()


class StackQueue(models.Model):
    """One row, locked while the next stack is picked: workers must count each other right."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)

    def __str__(self) -> str:
        return "the queue of syncs"
