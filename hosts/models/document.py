"""The state document of a host as last encoded, so that a poll is one look-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

from hosts.models.host import Host
from trailer.sealed import SealedField

if TYPE_CHECKING:
    from datetime import datetime


class HostDocument(models.Model):
    host = models.OneToOneField(
        Host, on_delete=models.CASCADE, primary_key=True, related_name="document"
    )
    version = models.PositiveBigIntegerField()
    etag = models.CharField(max_length=64)
    # Encrypted: the document carries secret environment values and registry passwords.
    body = SealedField(is_document=True)
    # When a grant ends that something in it rests on; empty: none does that has an end.
    until = models.DateTimeField(null=True, db_index=True)
    # TRAILER_OPEN_HOSTS at that time: what everybody may do is part of what it says.
    open_hosts = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"document {self.version} of {self.host_id}"


def still_holds(now: datetime, *, path: str = "") -> Q:
    """Documents that only an edit makes outdated: no grant that they rest on has ended, and what
    everybody may do is the same."""
    endless = Q(**{f"{path}until__isnull": True}) | Q(**{f"{path}until__gt": now})
    return endless & Q(**{f"{path}open_hosts": settings.TRAILER_OPEN_HOSTS})
