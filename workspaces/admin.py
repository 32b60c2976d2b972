"""Admin pages of workspaces, their ledger and their revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from unfold.decorators import display

from trailer.service_admin import ReadOnlyAdmin, ServiceAdmin, label_colours
from workspaces.admin_forms import (
    EnvInline,
    MountInline,
    PortInline,
    UrlInline,
    WorkspaceForm,
    workspace_data,
)
from workspaces.models import Event, Revision, Workspace
from workspaces.services import (
    workspace_create,
    workspace_delete,
    workspace_redeploy,
    workspace_start,
    workspace_stop,
    workspace_update,
)
from workspaces.status import BADGES, workspace_badge

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.register(Workspace)
class WorkspaceAdmin(ServiceAdmin):
    form = WorkspaceForm
    inlines: ClassVar = [PortInline, MountInline, EnvInline, UrlInline]
    list_display = ("name", "status", "host", "image", "owner", "desired_state", "message")
    list_filter = ("host", "desired_state", "observed_status", "nested_virtualization")
    list_select_related = ("host", "image", "owner")
    search_fields = ("name", "description", "host__name", "image__name", "owner__username")
    filter_horizontal = ("networks",)
    actions: ClassVar = ["start", "stop", "redeploy"]
    readonly_fields = (
        *("status", "message", "observed_at", "observed_revision", "container_id"),
        *("started_at", "restart_count", "health", "exit_code", "owner", "revision"),
        *("created_at", "updated_at"),
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("name", "description", "host", "image", "desired_state", "seen_revision"),
                )
            },
        ),
        (
            "Container",
            {
                "fields": (
                    *("command", "cpus", "memory_bytes", "shm_bytes", "gpus"),
                    *("nested_virtualization", "networks", "labels"),
                )
            },
        ),
        (
            "Health and time",
            {
                "fields": (
                    *("health_check", "startup_timeout", "drain_timeout"),
                    *("shared_volumes", "idle_stop_minutes", "schedule"),
                )
            },
        ),
        ("Observed", {"fields": readonly_fields}),
    )

    @display(description="Status", label=label_colours(BADGES.values()))  # type: ignore[untyped-decorator]
    def status(self, workspace: Workspace) -> str:
        return workspace_badge(workspace).label if workspace.pk else ""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "host") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing yet: the parts in the inlines belong to the same change."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        data = workspace_data(form, formsets)
        if change:
            workspace_update(
                actor=request.user,
                workspace=form.instance,
                data=data,
                expected_revision=form.expected_revision,
            )
        else:
            self.adopt(form.instance, workspace_create(actor=request.user, data=data))

    def service_delete(self, request: HttpRequest, obj: Workspace) -> None:
        workspace_delete(actor=request.user, workspace=obj)

    @admin.action(description="Start")
    def start(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._run(request, queryset, workspace_start, "Starting")

    @admin.action(description="Stop")
    def stop(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._run(request, queryset, workspace_stop, "Stopping")

    @admin.action(description="Redeploy")
    def redeploy(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._run(request, queryset, workspace_redeploy, "Redeploying")

    def _run(
        self,
        request: HttpRequest,
        queryset: QuerySet[Workspace],
        service: Callable[..., Workspace],
        done: str,
    ) -> None:
        def one(workspace: Workspace) -> Workspace:
            return service(actor=request.user, workspace=workspace)

        self.run_each(request, queryset, one, done)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("at", "workspace", "kind", "cause", "actor", "revision", "cycle")
    list_filter = ("kind", "workspace__host")
    list_select_related = ("workspace", "actor")
    search_fields = ("workspace__name", "cause")


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ("workspace", "revision", "actor", "created_at")
    list_filter = ("workspace__host",)
    list_select_related = ("workspace", "actor")
    search_fields = ("workspace__name",)
    exclude = ("secret_env_token",)
