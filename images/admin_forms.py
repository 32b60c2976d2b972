"""The admin's inline of an image's build secrets, and its translation into the API's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from unfold.admin import TabularInline

from images.models import BuildSecret
from trailer.service_admin import ServiceForm

if TYPE_CHECKING:
    from collections.abc import Iterable


class SecretForm(ServiceForm):
    """A value is written, never shown; left empty it stays as it is."""

    value = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 1}))

    class Meta:
        model = BuildSecret
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields["value"].widget.attrs["placeholder"] = "•••• stored; empty keeps it"


class SecretInline(TabularInline):  # type: ignore[misc]
    model = BuildSecret
    form = SecretForm
    extra = 0
    tab = True
    fields: ClassVar = ["name", "value"]


def secrets_data(formsets: Iterable[Any]) -> dict[str, str | None]:
    """As image_create() and image_update() take them."""
    values: dict[str, str | None] = {}
    for formset in formsets:
        # Nothing is stored by this; the admin's own history wants to know what moved.
        formset.save(commit=False)
        for row in formset.cleaned_data:
            if row and not row.get("DELETE"):
                keeps = not row["value"] and row.get("id") is not None
                values[row["name"]] = None if keeps else row["value"]
    return values
