"""Who works on a job, and when it was begun last."""

from __future__ import annotations

import uuid

from django.db import models


class JobLease(models.Model):
    job = models.CharField(max_length=100, primary_key=True)
    # Of the run at hand: whoever outlived its lease must not end the next one's.
    holder = models.UUIDField(default=uuid.uuid4)
    held_until = models.DateTimeField()
    begun_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.job
