"""Admin pages of hosts, networks, volumes, and what agents leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.utils import timezone
from unfold.decorators import display

from hosts.models import (
    AgentRollout,
    AgentToken,
    Cycle,
    Enrolment,
    Host,
    HostDocument,
    Network,
    Tombstone,
    Volume,
)
from hosts.services.enrolment import enrolment_create
from hosts.services.fields import HOST_COLUMNS
from hosts.services.hosts import host_create, host_delete, host_update
from hosts.services.networks import network_create, network_delete
from hosts.services.volumes import volume_create, volume_delete
from hosts.status import HOST_BADGES, host_badge
from trailer.service_admin import (
    ReadOnlyAdmin,
    RevisionForm,
    ServiceAdmin,
    ServiceForm,
    label_colours,
)

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest

_SEEN = ("status", "message", "engine_id", "observed_at", "revision")


@admin.register(Host)
class HostAdmin(ServiceAdmin):
    form = RevisionForm
    list_display = ("name", "status", "enabled", "agent_version", "last_heartbeat", "message")
    list_filter = ("enabled", "router_mode")
    search_fields = ("name", "description")
    actions: ClassVar = ["enable", "disable", "enrol"]
    readonly_fields = (
        *("status", "message", "last_heartbeat", "agent_version", "engine", "capabilities"),
        *("cpu_count", "memory_bytes", "disk_free_bytes", "disk_total_bytes", "gpus"),
        *("interfaces", "revision", "created_at", "updated_at"),
    )
    fieldsets = (
        (
            None,
            {"fields": ("name", "description", "enabled", "seen_revision")},
        ),
        (
            "Intervals and limits",
            {
                "fields": (
                    *("reconcile_interval", "heartbeat_interval"),
                    *("build_timeout", "pull_timeout", "build_idle_timeout"),
                    *("build_context_bytes", "build_parallel"),
                    *("update_interval", "disk_free_min_bytes"),
                )
            },
        ),
        (
            "Router",
            {"fields": tuple(name for name in HOST_COLUMNS if name.startswith("router_"))},
        ),
        (
            "NVIDIA",
            {"fields": tuple(name for name in HOST_COLUMNS if name.startswith("nvidia_"))},
        ),
        (
            "Metrics",
            {"fields": tuple(name for name in HOST_COLUMNS if name.startswith("metrics_"))},
        ),
        ("Agent", {"fields": ("agent_image", "maintenance_schedule", "block_metadata")}),
        ("Observed", {"fields": readonly_fields}),
    )

    @display(description="Status", label=label_colours(HOST_BADGES.values()))  # type: ignore[untyped-decorator]
    def status(self, host: Host) -> str:
        return host_badge(host, timezone.now()).label if host.pk else ""

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return host_create(actor=request.user, **_host_fields(form))

    def service_update(self, request: HttpRequest, obj: Host, form: Any) -> Model:
        return host_update(
            actor=request.user,
            host=obj,
            expected_revision=form.expected_revision,
            **_host_fields(form),
        )

    def service_delete(self, request: HttpRequest, obj: Host) -> None:
        host_delete(actor=request.user, host=obj)

    @admin.action(description="Enable")
    def enable(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._switch(request, queryset, enabled=True)

    @admin.action(description="Disable (stops its workspaces)")
    def disable(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        self._switch(request, queryset, enabled=False)

    @admin.action(description="New enrolment line")
    def enrol(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        def one(host: Host) -> None:
            made = enrolment_create(actor=request.user, host=host)
            messages.info(request, f"Paste on {host}, within 15 minutes: {made.command}")

        self.run_each(request, queryset, one, "Enrolments made")

    def _switch(self, request: HttpRequest, queryset: QuerySet[Host], *, enabled: bool) -> None:
        def one(host: Host) -> Host:
            return host_update(actor=request.user, host=host, enabled=enabled)

        self.run_each(request, queryset, one, "Enabled" if enabled else "Disabled")


def _host_fields(form: Any) -> Any:
    given = {name: form.cleaned_data[name] for name in HOST_COLUMNS}
    # An emptied field of JSON says nothing at all.
    return {**given, "router_domains": given["router_domains"] or []}


@admin.register(Network)
class NetworkAdmin(ServiceAdmin):
    """A network is made and deleted; engines can't change one."""

    form = ServiceForm
    list_display = ("name", "host", "driver", "subnet", "owner", "status", "message")
    list_filter = ("host", "driver", "status", "internal")
    list_select_related = ("host", "owner")
    search_fields = ("name", "host__name", "owner__username")
    fields: ClassVar = [
        *("name", "host", "driver", "internal", "parent_interface", "subnet", "gateway"),
        *("ip_range", *_SEEN),
    ]
    readonly_fields = _SEEN

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return network_create(actor=request.user, **form.cleaned_data)

    def service_delete(self, request: HttpRequest, obj: Network) -> None:
        network_delete(actor=request.user, network=obj)


@admin.register(Volume)
class VolumeAdmin(ServiceAdmin):
    """A volume is made and deleted. The confirmation page stands for repeating its name."""

    form = ServiceForm
    list_display = ("name", "host", "kind", "source", "owner", "status", "message")
    list_filter = ("host", "kind", "status")
    list_select_related = ("host", "owner")
    search_fields = ("name", "host__name", "owner__username", "source")
    fields: ClassVar = ["name", "host", "kind", "source", *_SEEN]
    readonly_fields = _SEEN

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return volume_create(actor=request.user, **form.cleaned_data)

    def service_delete(self, request: HttpRequest, obj: Volume) -> None:
        volume_delete(actor=request.user, volume=obj, confirm=obj.name)


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    list_display = ("name", "kind", "host", "message", "created_at")
    list_filter = ("host", "kind")
    list_select_related = ("host",)
    search_fields = ("name",)


@admin.register(Cycle)
class CycleAdmin(ReadOnlyAdmin):
    list_display = ("number", "host", "trigger", "outcome", "cleanup", "started_at", "message")
    list_filter = ("host", "outcome", "trigger", "cleanup")
    list_select_related = ("host",)
    search_fields = ("message",)


@admin.register(Enrolment)
class EnrolmentAdmin(ReadOnlyAdmin):
    list_display = ("host", "created_by", "created_at", "expires_at", "used_at")
    list_filter = ("host",)
    list_select_related = ("host", "created_by")
    exclude = ("digest",)


@admin.register(AgentToken)
class AgentTokenAdmin(ReadOnlyAdmin):
    list_display = ("host", "created_at", "is_unused", "revoked_at")
    list_filter = ("host",)
    list_select_related = ("host",)
    exclude = ("digest",)


@admin.register(HostDocument)
class HostDocumentAdmin(ReadOnlyAdmin):
    """The body holds secrets and is not shown."""

    list_display = ("host", "version", "etag")
    list_select_related = ("host",)
    exclude = ("body",)


@admin.register(AgentRollout)
class AgentRolloutAdmin(ReadOnlyAdmin):
    list_display = ("image", "status", "message", "created_by", "created_at", "finished_at")
    list_filter = ("status",)
    list_select_related = ("created_by",)
    search_fields = ("image",)
