"""Admin pages of stacks, their syncs and their revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from unfold.decorators import display

from trailer.service_admin import ReadOnlyAdmin, RevisionForm, ServiceAdmin, label_colours
from workspaces.stacks.models import (
    NeedCredential,
    Stack,
    StackImage,
    StackRevision,
    StackVolume,
    Sync,
    WebhookDelivery,
)
from workspaces.stacks.services.actions import stack_deploy, stack_sync
from workspaces.stacks.services.fields import PLAIN
from workspaces.stacks.services.stacks import stack_create, stack_delete, stack_update
from workspaces.stacks.status import BADGES, stack_badge

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest


class StackForm(RevisionForm):
    webhook_secret = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Never shown. Leave it empty to keep the stored one.",
    )

    def given(self) -> dict[str, Any]:
        given = {name: self.cleaned_data[name] for name in PLAIN}
        given["variables"] = given["variables"] or {}
        if self.cleaned_data["webhook_secret"]:
            given["webhook_secret"] = self.cleaned_data["webhook_secret"]
        return given


@admin.register(Stack)
class StackAdmin(ServiceAdmin):
    form = StackForm
    list_display = ("name", "badge", "host", "repository", "branch", "owner", "message")
    list_filter = ("host", "status", "enabled", "pinned")
    list_select_related = ("host", "owner")
    search_fields = ("name", "repository", "host__name", "owner__username")
    actions: ClassVar = ["deploy", "sync"]
    readonly_fields = (
        *("status", "message", "deployed_commit", "available_commit", "failed_commit", "pinned"),
        *("checked_at", "poll_at", "recipient", "owner", "revision", "created_at", "updated_at"),
    )
    fieldsets = (
        (None, {"fields": ("name", "description", "host", "enabled", "seen_revision")}),
        ("Source", {"fields": ("repository", "branch", "path", "poll_interval")}),
        ("Values", {"fields": ("variables", "webhook_secret")}),
        ("Observed", {"fields": readonly_fields}),
    )

    @display(description="Status", label=label_colours(BADGES.values()), ordering="status")  # type: ignore[untyped-decorator]
    def badge(self, stack: Stack) -> str:
        return stack_badge(stack).label

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "name", "host") if obj else self.readonly_fields

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        data = form.cleaned_data
        return stack_create(
            actor=request.user, host=data["host"], name=data["name"], **form.given()
        )

    def service_update(self, request: HttpRequest, obj: Stack, form: Any) -> Model:
        return stack_update(
            actor=request.user, stack=obj, expected_revision=form.expected_revision, **form.given()
        )

    def service_delete(self, request: HttpRequest, obj: Stack) -> None:
        stack_delete(actor=request.user, stack=obj)

    @admin.action(description="Deploy")
    def deploy(self, request: HttpRequest, queryset: QuerySet[Stack]) -> None:
        def one(stack: Stack) -> Sync:
            return stack_deploy(actor=request.user, stack=stack)

        self.run_each(request, queryset, one, "Queued")

    @admin.action(description="Sync")
    def sync(self, request: HttpRequest, queryset: QuerySet[Stack]) -> None:
        def one(stack: Stack) -> Sync:
            return stack_sync(actor=request.user, stack=stack)

        self.run_each(request, queryset, one, "Queued")


@admin.register(Sync)
class SyncAdmin(ReadOnlyAdmin):
    list_display = ("stack", "number", "trigger", "phase", "outcome", "message", "created_at")
    list_filter = ("trigger", "phase", "outcome", "stack__host")
    list_select_related = ("stack",)
    search_fields = ("stack__name", "message", "commit")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("stack", "received_at", "sync")
    list_filter = ("stack__host",)
    list_select_related = ("stack", "sync")
    search_fields = ("stack__name",)


@admin.register(StackRevision)
class StackRevisionAdmin(ReadOnlyAdmin):
    list_display = ("stack", "number", "commit", "author", "deployed_at", "created_at")
    list_filter = ("stack__host",)
    list_select_related = ("stack",)
    search_fields = ("stack__name", "commit", "author")
    exclude = ("secret_variables_token",)


@admin.register(StackImage)
class StackImageAdmin(ReadOnlyAdmin):
    list_display = ("stack", "reference", "image")
    list_select_related = ("stack", "image")
    search_fields = ("stack__name", "reference")


@admin.register(StackVolume)
class StackVolumeAdmin(ReadOnlyAdmin):
    list_display = ("volume", "stack_name")
    list_select_related = ("volume",)
    search_fields = ("stack_name", "volume__name")


@admin.register(NeedCredential)
class NeedCredentialAdmin(ReadOnlyAdmin):
    list_display = ("volume",)
    list_select_related = ("volume",)
    exclude = ("token",)
