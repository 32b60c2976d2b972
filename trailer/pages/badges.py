"""What a page shows of an object's status; the words and colours come from the status tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.models import Host, Network, Volume
from hosts.status import (
    Badge,
    host_badge,
    host_message,
    is_fresh,
    object_message,
    resource_badge,
    stale_since,
)
from images.models import Build, Image, Registry
from images.status import image_badge, image_badge_of, registry_badge, registry_message
from images.told import image_message
from workspaces.models import Workspace
from workspaces.stacks.models import Stack
from workspaces.stacks.status import stack_badge
from workspaces.status import workspace_badge

if TYPE_CHECKING:
    from datetime import datetime

    from trailer.policy import Actor

Shown = Workspace | Image | Host | Network | Volume | Registry | Stack


@dataclass(frozen=True)
class State:
    """One object's status at this moment."""

    resource: str
    badge: Badge
    fresh: bool
    # Since when, if what we know is no longer fresh.
    since: datetime | None


def resource_of(obj: Shown) -> str:
    """The object's name on the live socket: `workspace:<id>`."""
    return f"{obj._meta.model_name}:{obj.pk}"


def state_of(obj: Shown) -> State:
    """Everything but a host needs its `host` loaded."""
    now = timezone.now()
    if isinstance(obj, Host):
        # The status of a silent host says so itself.
        return State(resource_of(obj), host_badge(obj, now), fresh=True, since=None)
    if isinstance(obj, Registry):
        return State(resource_of(obj), registry_badge(obj, now), fresh=True, since=None)
    fresh = is_fresh(obj.host, now)
    return State(resource_of(obj), badge_of(obj), fresh, since=stale_since(obj.host, now))


def message_of(obj: Shown, actor: Actor) -> str:
    if isinstance(obj, Host):
        return host_message(obj)
    if isinstance(obj, Registry):
        return registry_message(obj, timezone.now())
    own = image_message(actor, obj, timezone.now()) if isinstance(obj, Image) else obj.message
    return object_message(obj.host, own)


def badge_of(obj: Workspace | Image | Network | Volume | Build | Stack) -> Badge:
    if isinstance(obj, Stack):
        return stack_badge(obj)
    if isinstance(obj, Workspace):
        return workspace_badge(obj)
    if isinstance(obj, Image):
        return image_badge_of(obj)
    if isinstance(obj, Build):
        return image_badge(obj.status)
    return resource_badge(obj.status)
