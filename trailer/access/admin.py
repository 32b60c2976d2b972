"""Grants, capabilities and quotas in the admin pages: to be read; they are given elsewhere."""

from __future__ import annotations

from django.contrib import admin

from trailer.access.models import Grant, HostCapability, Quota
from trailer.service_admin import ReadOnlyAdmin


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    list_display = ("kind", "object_id", "user", "group", "role", "expires_at", "granted_by")
    list_filter = ("kind", "role")
    list_select_related = ("user", "group", "granted_by")
    search_fields = ("user__username", "group__name", "object_id")


@admin.register(HostCapability)
class HostCapabilityAdmin(ReadOnlyAdmin):
    list_display = ("host_id", "user", "group", "capability", "granted_by")
    list_filter = ("capability",)
    list_select_related = ("user", "group", "granted_by")
    search_fields = ("user__username", "group__name", "host_id")


@admin.register(Quota)
class QuotaAdmin(ReadOnlyAdmin):
    list_display = ("user", "group", "workspaces", "cpus", "memory_bytes", "gpus", "disk_bytes")
    list_select_related = ("user", "group")
    search_fields = ("user__username", "group__name")
