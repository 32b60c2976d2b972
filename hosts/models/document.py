"""The state document of a host as last encoded, so that a poll is one look-up."""

from __future__ import annotations

from django.db import models

from hosts.models.host import Host
from trailer.sealed import SealedField


class HostDocument(models.Model):
    host = models.OneToOneField(
        Host, on_delete=models.CASCADE, primary_key=True, related_name="document"
    )
    version = models.PositiveBigIntegerField()
    etag = models.CharField(max_length=64)
    # Encrypted: the document carries secret environment values and registry passwords.
    body = SealedField(is_document=True)

    def __str__(self) -> str:
        return f"document {self.version} of {self.host_id}"
