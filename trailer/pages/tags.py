"""Template tags of the pages: badges, actions, icons, fields, sizes; `{% load trailer %}`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html

from images.selectors import update_available
from trailer import policy, quantities
from trailer.pages import addresses, audit_words
from trailer.pages.badges import Shown, badge_of, message_of, resource_of, state_of
from trailer.pages.navigation import links_for
from trailer.storage import storage
from workspaces.story.fields import label_of
from workspaces.urls.place import url_address

if TYPE_CHECKING:
    from datetime import datetime

    from django.template.context import Context
    from django.utils.safestring import SafeString

    from hosts.models import Host
    from hosts.status import Badge
    from images.models import Build, Image
    from trailer.pages.badges import State
    from trailer.pages.navigation import Link
    from trailer.policy import Actor
    from workspaces.models import Port, Url

register = template.Library()


@register.inclusion_tag("partials/badge.html")
def badge(obj: Shown) -> dict[str, Any]:
    return {"state": state_of(obj)}


@register.inclusion_tag("partials/message.html", takes_context=True)
def message(context: Context, obj: Shown) -> dict[str, Any]:
    told = message_of(obj, context["request"].user)
    return {"resource": resource_of(obj), "message": told}


@register.filter
def told(obj: Shown, actor: Actor) -> str:
    """The same as text alone, as the live socket says it."""
    return message_of(obj, actor)


@register.inclusion_tag("partials/action.html", takes_context=True)
def action(
    context: Context,
    obj: Shown,
    name: str,
    label: str,
    icon_name: str,
    style: str = "",
    **options: Any,
) -> dict[str, Any]:
    """A button that carries out `name` on the object; `style`: icon, danger, icon-danger or none.

    Options: `confirm`, a sentence to ask first, or "type" to ask for the object's name; `always`,
    for what no status forbids; `open`, the dialog whose form does it.
    """
    offered = options.get("always", False) or name in state_of(obj).badge.actions
    allowed = offered and bool(policy.allowed_of(context["request"].user, obj, (name,)))
    return {
        "resource": resource_of(obj),
        "object_name": str(obj),
        "name": name,
        "label": label,
        "icon": icon_name,
        "style": style,
        "confirm": options.get("confirm", ""),
        "open": options.get("open", ""),
        "always": options.get("always", False),
        "allowed": allowed,
    }


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        extra,
        static("vendor/lucide/sprite.svg"),
        name,
    )


@register.inclusion_tag("partials/field.html")
def field(name: str, label: str, value: object = "", **options: Any) -> dict[str, Any]:
    """A labelled input with the API's field name.

    Options: hint, placeholder, type, unit, encode (how the script turns the text into JSON),
    autocomplete, mono, required, choices [(value, label)], rows (a textarea).
    """
    shown = "" if value is None else value
    return {
        "name": name,
        "id": f"field-{name.replace('.', '-')}",
        "label": label,
        "value": shown,
        "selected": str(shown),
        **options,
    }


@register.inclusion_tag("partials/check.html")
def check(name: str, label: str, value: object = False, hint: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "id": f"field-{name.replace('.', '-')}",
        "label": label,
        "value": value,
        "hint": hint,
    }


@register.inclusion_tag("partials/time.html")
def ago(moment: datetime | None, empty: str = "never") -> dict[str, Any]:
    return {"moment": moment, "empty": empty}


@register.simple_tag
def storage_trouble() -> str:
    return storage().trouble()


@register.simple_tag(takes_context=True)
def may(context: Context, verb: str, obj: Shown | None = None) -> bool:
    """`{% may "host.modify" host as allowed %}`"""
    return policy.allows(context["request"].user, verb, obj)


@register.simple_tag(takes_context=True)
def port_link(context: Context, port: Port, host: Host) -> str:
    """Where the port can be opened, or "" when nobody can tell."""
    name = context["request"].get_host().rsplit(":", maxsplit=1)[0]
    return addresses.port_address(port, host, name)


@register.filter
def url_link(url: Url) -> str:
    return url_address(url)


@register.simple_tag(takes_context=True)
def navigation(context: Context) -> list[Link]:
    request = context["request"]
    return links_for(request.user, request.path)


@register.filter
def build_badge(build: Build) -> Badge:
    return badge_of(build)


@register.filter
def state(obj: Shown) -> State:
    return state_of(obj)


@register.filter
def is_fresh(obj: Shown) -> bool:
    return state_of(obj).fresh


@register.filter
def words(value: str) -> str:
    """`snapshot_requested` as people write it."""
    return value.replace("_", " ")


@register.filter
def audit_action(action: str) -> str:
    return audit_words.action_words(action)


@register.filter
def audit_kind(kind: str) -> str:
    return audit_words.kind_words(kind).capitalize()


@register.filter
def browser(user_agent: str) -> str:
    return audit_words.browser_name(user_agent)


@register.filter
def has_update(image: Image) -> bool:
    return update_available(image)


@register.filter
def resource(obj: Shown) -> str:
    return resource_of(obj)


@register.filter
def size(value: int | None) -> str:
    return quantities.rough_size(value)


@register.filter
def exact_size(value: int | None) -> str:
    return quantities.exact_size(value)


@register.filter
def until(start: datetime | None, end: datetime | None) -> str:
    return quantities.rough_duration(end - start if start and end else None)


@register.filter
def field_label(name: str) -> str:
    """What a field of a workspace is called; of anything else its name in words."""
    return label_of(name)


@register.filter
def side(change: dict[str, Any], name: str) -> str:
    """The old (`from`) or new (`to`) value of a field change, in words."""
    value = change.get(name)
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, int) and str(change.get("field", "")).endswith("_bytes"):
        return quantities.exact_size(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def short_id(value: str) -> str:
    """Twelve digits, as the engine's own commands print ids."""
    return value.removeprefix("sha256:")[:12]
