"""What is known of a workspace that stops or starts by itself; one row, made when first needed."""

from __future__ import annotations

from django.db import models

from workspaces.models.workspace import Workspace


class Timer(models.Model):
    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="timer"
    )
    # When somebody last decided about the run or the schedule: what was due before is past.
    settled_at = models.DateTimeField()
    # From when on samples have come without a gap.
    watched_since = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)
    used_by = models.CharField(max_length=80, blank=True)
    terminal_at = models.DateTimeField(null=True)
    extended_until = models.DateTimeField(null=True)
    # The stop of which people were warned, and the start that was refused: told once each.
    warned_of = models.DateTimeField(null=True)
    refused_start = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"timer of {self.workspace_id}"
