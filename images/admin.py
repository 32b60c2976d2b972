"""Admin pages of registries, images and builds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from unfold.decorators import display

from images.admin_forms import SecretInline, secrets_data
from images.models import Build, BuildLogChunk, Image, Registry, RegistryTest
from images.services.fields import IMAGE_COLUMNS
from images.services.images import (
    image_build,
    image_cancel,
    image_create,
    image_delete,
    image_update,
)
from images.services.logs import build_log_read
from images.services.registries import registry_create, registry_delete, registry_update
from images.status import BADGES, image_badge
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

_SHOWN_LOG = 64 * 1024


class RegistryForm(ServiceForm):
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Never shown. Leave it empty to keep the stored one.",
    )

    class Meta:
        model = Registry
        fields = ("server", "username")

    def given(self) -> dict[str, str]:
        """An empty password is no password to store, but the one that is stored already."""
        names = ("server", "username", "password")
        given = {name: str(self.cleaned_data.get(name, "")) for name in names}
        if not given["password"]:
            del given["password"]
        return given


@admin.register(Registry)
class RegistryAdmin(ServiceAdmin):
    form = RegistryForm
    list_display = ("server", "username", "owner", "updated_at")
    list_filter = ("server",)
    list_select_related = ("owner",)
    search_fields = ("server", "username", "owner__username")
    fields: ClassVar = ["server", "username", "password"]

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return registry_create(actor=request.user, **form.given())

    def service_update(self, request: HttpRequest, obj: Registry, form: Any) -> Model:
        return registry_update(actor=request.user, registry=obj, **form.given())

    def service_delete(self, request: HttpRequest, obj: Registry) -> None:
        registry_delete(actor=request.user, registry=obj)


@admin.register(RegistryTest)
class RegistryTestAdmin(ReadOnlyAdmin):
    list_display = ("registry", "host", "status", "message", "created_at", "finished_at")
    list_filter = ("status", "host")
    list_select_related = ("registry", "host")
    search_fields = ("registry__server", "registry__username", "message")


@admin.register(Image)
class ImageAdmin(ServiceAdmin):
    form = RevisionForm
    inlines: ClassVar = [SecretInline]
    list_display = ("name", "host", "kind", "reference", "badge", "owner", "updated_at")
    list_filter = ("host", "kind", "status", "enabled", "update_policy")
    list_select_related = ("host", "owner")
    search_fields = ("name", "reference", "host__name", "owner__username")
    actions: ClassVar = ["build", "cancel"]
    readonly_fields = (
        *("status", "message", "progress", "digest", "engine_id", "size_bytes"),
        *("available_digest", "source_workspace", "observed_at", "owner", "revision"),
        *("created_at", "updated_at"),
    )
    fieldsets = (
        (None, {"fields": ("name", "host", "kind", "enabled", "seen_revision")}),
        ("Pull and push", {"fields": ("reference", "registry", "update_policy", "push")}),
        ("Build", {"fields": ("dockerfile", "files", "build_args", "target", "pull_base")}),
        ("Observed", {"fields": readonly_fields}),
    )

    @display(description="Status", label=label_colours(BADGES.values()), ordering="status")  # type: ignore[untyped-decorator]
    def badge(self, image: Image) -> str:
        return image_badge(image.status).label

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "host", "kind") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing yet: the secrets in the inline belong to the same change."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        fields = {**_image_fields(form), "build_secrets": secrets_data(formsets)}
        if change:
            image_update(
                actor=request.user,
                image=form.instance,
                expected_revision=form.expected_revision,
                **fields,
            )
            return
        data = form.cleaned_data
        made = image_create(actor=request.user, host=data["host"], kind=data["kind"], **fields)
        self.adopt(form.instance, made)

    def service_delete(self, request: HttpRequest, obj: Image) -> None:
        image_delete(actor=request.user, image=obj)

    @admin.action(description="Build or pull again")
    def build(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        def one(image: Image) -> Image:
            return image_build(actor=request.user, image=image)

        self.run_each(request, queryset, one, "Queued")

    @admin.action(description="Cancel what is under way")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        def one(image: Image) -> Image:
            return image_cancel(actor=request.user, image=image)

        self.run_each(request, queryset, one, "Asked to end")


def _image_fields(form: Any) -> Any:
    given = {name: form.cleaned_data[name] for name in IMAGE_COLUMNS}
    given["files"] = given["files"] or []
    given["build_args"] = given["build_args"] or {}
    return given


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    list_display = ("image", "number", "trigger", "status", "message", "created_at")
    list_filter = ("status", "trigger", "image__host")
    list_select_related = ("image",)
    search_fields = ("image__name", "message")
    readonly_fields = ("output",)

    @admin.display(description="Output (the last 64 KiB)")
    def output(self, build: Build) -> str:
        text, _, _ = build_log_read(build, max(0, build.log_bytes - _SHOWN_LOG))
        return text.decode(errors="replace")


@admin.register(BuildLogChunk)
class BuildLogChunkAdmin(ReadOnlyAdmin):
    list_display = ("build", "offset")
    list_select_related = ("build",)
    exclude = ("data",)
