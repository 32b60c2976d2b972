"""The audit in the admin pages: to be read only."""

from __future__ import annotations

from django.contrib import admin

from trailer.audit.models import AuditEntry
from trailer.service_admin import ReadOnlyAdmin


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "action", "object_name", "via", "address", "outcome")
    list_filter = ("via", "outcome", "kind")
    search_fields = ("actor_name", "object_name", "action", "address", "request_id")
