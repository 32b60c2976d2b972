"""How an agent gets in: a one-time enrolment token, exchanged for the agent's own token."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from hosts.models.host import Host


class Enrolment(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="enrolments")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"enrolment of {self.host_id}"


class AgentToken(models.Model):
    """Bound to one host: every agent route takes the host from here, never from the request."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="agent_tokens")
    digest = models.CharField(max_length=64, unique=True)
    # Issued beside the one in use, which its first use ends.
    is_unused = models.BooleanField(default=False, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"agent token of {self.host_id}"
