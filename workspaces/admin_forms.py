"""The admin's form and inlines of a workspace, and their translation into the API's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from unfold.admin import TabularInline

from trailer.service_admin import RevisionForm, ServiceForm
from workspaces.models import EnvVar, Mount, Port, Url

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: Final = (
    *("name", "description", "desired_state", "memory_bytes", "shm_bytes"),
    *("nested_virtualization", "startup_timeout", "drain_timeout", "idle_stop_minutes"),
    "shared_volumes",
)
# Inline model -> (the API's list, its keys).
_LISTS: Final = {
    Port: ("ports", ("container_port", "protocol", "host_port", "host_ip")),
    Mount: ("mounts", ("volume", "target", "read_only")),
    Url: ("urls", ("subdomain", "domain", "port", "tls", "auth")),
}
_PARTS: Final = {
    "ports": "Ports",
    "mounts": "Mounts",
    "urls": "URLs",
    "env": "Environment",
    "secret_env": "Environment",
}


class WorkspaceForm(RevisionForm):
    """JSON fields show the API's shape; empty means none."""

    def field_named(self, name: str) -> str | None:
        return super().field_named(name) if name.partition(".")[0] not in _PARTS else None


class EnvForm(ServiceForm):
    """A secret's value is written, never shown; left empty it stays as it is."""

    value = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 1}))

    class Meta:
        model = EnvVar
        fields = ("name", "value", "is_secret")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.is_secret:
            self.fields["value"].widget.attrs["placeholder"] = "•••• stored; empty keeps it"


class PortInline(TabularInline):  # type: ignore[misc]
    model = Port
    extra = 0
    tab = True


class MountInline(TabularInline):  # type: ignore[misc]
    model = Mount
    extra = 0
    tab = True


class UrlInline(TabularInline):  # type: ignore[misc]
    model = Url
    extra = 0
    tab = True
    verbose_name = "URL"
    verbose_name_plural = "URLs"


class EnvInline(TabularInline):  # type: ignore[misc]
    model = EnvVar
    form = EnvForm
    extra = 0
    tab = True
    fields: ClassVar = ["name", "value", "is_secret"]
    verbose_name = "environment variable"
    verbose_name_plural = "environment"


def workspace_data(form: Any, formsets: Iterable[Any]) -> dict[str, Any]:
    """The whole form in the API's shape, as workspace_create() and workspace_update() take it."""
    cleaned = form.cleaned_data
    data = {name: cleaned[name] for name in _PLAIN}
    data |= {
        "image": str(cleaned["image"].pk),
        "command": cleaned["command"] or [],
        "cpus": None if cleaned["cpus"] is None else float(cleaned["cpus"]),
        "networks": [str(network.pk) for network in cleaned["networks"]],
        "gpus": cleaned["gpus"] or None,
        "health_check": cleaned["health_check"] or None,
        "schedule": cleaned["schedule"] or {},
        "labels": cleaned["labels"] or {},
    }
    if "host" in cleaned:
        data["host"] = str(cleaned["host"].pk)
    for formset in formsets:
        # Nothing is stored by this; the admin's own history wants to know what moved.
        formset.save(commit=False)
        rows = [row for row in formset.cleaned_data if row and not row.get("DELETE")]
        if formset.model is EnvVar:
            data |= _environment(rows)
        else:
            name, keys = _LISTS[formset.model]
            data[name] = [{key: _plain(row[key]) for key in keys} for row in rows]
    return data


def _environment(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, str | None]]:
    plain: dict[str, str | None] = {}
    secret: dict[str, str | None] = {}
    for row in rows:
        value = row["value"]
        if row["is_secret"]:
            stored = row.get("id")
            keeps = not value and stored is not None and stored.is_secret
            secret[row["name"]] = None if keeps else value
        else:
            plain[row["name"]] = value
    return {"env": plain, "secret_env": secret}


def _plain(value: Any) -> Any:
    """A volume travels as its id, everything else as it is."""
    return str(value.pk) if hasattr(value, "pk") else value
