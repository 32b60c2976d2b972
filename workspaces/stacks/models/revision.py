"""What a stack was made from at one commit: its files and the variables as they then were."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

from trailer.sealed import SealedField
from workspaces.stacks.models.stack import Stack


class StackRevision(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    commit = models.CharField(max_length=64)
    author = models.CharField(max_length=255, blank=True)
    message = models.TextField(blank=True)
    committed_at = models.DateTimeField(null=True)
    file_name = models.CharField(max_length=255)
    file_text = models.TextField()
    variables_text = models.TextField(blank=True)
    # Of the files only; see workspaces.stacks.file.types.Checkout.
    fingerprint = models.CharField(max_length=128)
    # The stack's own when its files were fetched; see Stack.origin.
    origin = models.CharField(max_length=64, blank=True)
    # Who had chosen that origin: the file is judged by their rights too.
    source_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    variables = models.JSONField(default=dict)
    secret_variables_token = SealedField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # When it first ran as a whole; only such a revision can be rolled back to.
    deployed_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stack", "number"], name="revision_number_per_stack")
        ]

    def __str__(self) -> str:
        return f"revision {self.number} of {self.stack_id}"
