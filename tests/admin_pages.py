"""Using admin pages in tests as a browser would: read the form, change some inputs, send it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.forms import Textarea
from django.test import Client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.accounts.models import User


def admin_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def form_values(client: Client, url: str) -> dict[str, Any]:
    """What a browser would send back unchanged, inlines included."""
    context = client.get(url).context
    forms = [context["adminform"].form]
    values: dict[str, Any] = {}
    for inline in context["inline_admin_formsets"]:
        formset = inline.formset
        forms += [formset.management_form, *formset.initial_forms]
    for form in forms:
        for bound in form:
            value = bound.value()
            shown = bound.field.widget.format_value(value) if _is_text(bound) else value
            if shown is None or shown is False:
                continue
            if isinstance(bound.field.widget, Textarea):
                shown = str(shown).replace("\n", "\r\n")
            values[bound.html_name] = "on" if shown is True else shown
    return values


def send_form(
    client: Client, url: str, changes: Mapping[str, Any], drop: tuple[str, ...] = ()
) -> Any:
    values = {k: v for k, v in form_values(client, url).items() if k not in drop}
    return client.post(url, values | dict(changes))


def errors_of(answer: Any) -> dict[str, list[str]]:
    """Refusals shown in the page; empty when it was saved."""
    if answer.status_code != 200:
        return {}
    found = dict(answer.context["adminform"].form.errors)
    for inline in answer.context["inline_admin_formsets"]:
        for number, errors in enumerate(inline.formset.errors):
            if errors:
                found[f"{inline.formset.prefix}.{number}"] = errors
    return found


def messages_of(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def run_action(client: Client, url: str, action: str, *rows: Any) -> Any:
    body = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return client.post(url, body, follow=True)


def _is_text(bound: Any) -> bool:
    return hasattr(bound.field.widget, "input_type") and bound.field.widget.input_type in {
        "text",
        "number",
        "hidden",
    }
