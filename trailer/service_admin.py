"""Base of all admin pages: every edit goes through the same service as the API's.

A service that refuses leaves its sentences in the form, beside the fields they belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.admin import ModelAdmin

from trailer.errors import ApplicationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django.db.models import Model, QuerySet

    _ModelForm = forms.ModelForm[Any]
else:
    # Django's own class takes no type parameter when the program runs.
    _ModelForm = forms.ModelForm

_ERROR = "trailer.service_error"


# Our palette -> the admin kit's names.
_VARIANTS = {"green": "success", "blue": "info", "amber": "warning", "red": "danger", "grey": ""}


def label_colours(badges: Iterable[Any]) -> dict[str, str]:
    """For the kit's coloured labels: the label's text and its colour, from a status table."""
    return {badge.label: _VARIANTS[badge.colour] or "default" for badge in badges}


class ServiceForm(_ModelForm):
    """Shows what the service refused; the second pass over the same input carries the refusal."""

    service_error: ApplicationError | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self._texts().values():
            field.strip = False

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self._texts():
            # Browsers send CRLF from text areas; saving an unchanged page must change nothing.
            if isinstance(cleaned.get(name), str):
                cleaned[name] = cleaned[name].replace("\r\n", "\n")
        error = self.service_error
        if error is None:
            return cleaned
        placed = False
        for name, sentences in error.fields.items():
            field = self.field_named(name)
            self.add_error(field, sentences if field else [f"{name}: {s}" for s in sentences])
            placed = True
        if not placed:
            self.add_error(None, error.message)
        return cleaned

    def _texts(self) -> dict[str, forms.CharField]:
        return {
            name: field
            for name, field in self.fields.items()
            if isinstance(field, forms.CharField)
            and isinstance(field.widget, forms.Textarea)
            and not isinstance(field, forms.JSONField)
        }

    def field_named(self, name: str) -> str | None:
        """The form's field for an API name: `router.mode`, `files.0.path`, `registry`."""
        for candidate in (name, name.replace(".", "_"), name.partition(".")[0]):
            if candidate in self.fields:
                return candidate
        return None


class RevisionForm(ServiceForm):
    """Carries the revision that the page was made from, so that nobody's later edit is undone."""

    seen_revision = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields["seen_revision"].initial = self.instance.revision

    @property
    def expected_revision(self) -> int | None:
        seen = self.cleaned_data.get("seen_revision")
        return seen if isinstance(seen, int) else None


class ServiceAdmin(ModelAdmin):  # type: ignore[misc]
    """Subclasses say which services create, change and delete."""

    form = ServiceForm
    list_per_page = 50
    warn_unsaved_form = True

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        raise ImproperlyConfigured(f"{type(self).__name__} names no service for this.")

    def service_update(self, request: HttpRequest, obj: Any, form: Any) -> Model:
        raise ImproperlyConfigured(f"{type(self).__name__} names no service for this.")

    def service_delete(self, request: HttpRequest, obj: Any) -> None:
        raise ImproperlyConfigured(f"{type(self).__name__} names no service for this.")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm[Any]]:
        form: type[forms.ModelForm[Any]] = super().get_form(request, obj, change, **kwargs)
        refused = {"service_error": request.META.get(_ERROR)}
        return type(form.__name__, (form,), refused)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """What the service refused is rolled back; the page is shown again with the reason."""
        answer: HttpResponse
        try:
            answer = super().changeform_view(request, object_id, form_url, extra_context)
        except ApplicationError as error:
            request.META[_ERROR] = error
            answer = super().changeform_view(request, object_id, form_url, extra_context)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            self.service_update(request, obj, form)
        else:
            self.adopt(obj, self.service_create(request, form))

    def adopt(self, obj: Any, made: Model) -> None:
        """The row that the service made takes the place of the form's unsaved one."""
        obj.__dict__.update(made.__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.service_delete(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """All or none: a refusal leaves everything as it was."""
        with transaction.atomic():
            for obj in queryset:
                self.service_delete(request, obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer: HttpResponse
        try:
            answer = super().delete_view(request, object_id, extra_context)
        except ApplicationError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.path)
        return answer

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer: HttpResponse
        try:
            answer = super().changelist_view(request, extra_context)
        except ApplicationError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())
        return answer

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """What the page lists; whether it may be deleted is the service's word."""
        names = [str(obj) for obj in objs]
        return names, {str(self.model._meta.verbose_name_plural): len(names)}, set(), []

    def run_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        service: Callable[[Any], object],
        done: str,
    ) -> None:
        """For actions: each object on its own; what is refused is told by name."""
        count = 0
        for obj in queryset:
            try:
                service(obj)
            except ApplicationError as error:
                messages.error(request, f"{obj}: {error.message}")
            else:
                count += 1
        if count:
            messages.success(request, f"{done}: {count}.")


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """History and observations: to be looked at, never edited."""

    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
