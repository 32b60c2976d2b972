"""Whole small states for the live socket: what a badge needs, for whom may see it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hosts.models import Host, Network, Volume
from hosts.status import (
    host_badge,
    host_message,
    is_fresh,
    is_heard,
    object_message,
    resource_badge,
    stale_since,
)
from images.models import Image, Registry
from images.selectors import update_available
from images.status import image_badge_of, registry_badge, registry_message
from images.told import image_message
from trailer import policy
from workspaces.models import Workspace
from workspaces.stacks.models import Stack
from workspaces.stacks.status import stack_badge
from workspaces.status import workspace_badge
from workspaces.story.live import events_states
from workspaces.timers.told import stop_warning
from workspaces.usage import usage_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from django.db.models import Model

    from hosts.status import Badge
    from trailer.policy import Actor

State = dict[str, Any]
OnHost = Workspace | Image | Network | Volume | Stack

KINDS = ("workspace", "image", "host", "network", "volume", "registry", "stack", "usage", "events")


def live_states(actor: Actor, resources: Iterable[str], now: datetime) -> dict[str, State]:
    """States of those of the resources that exist and that the actor may see, one query a kind."""
    wanted: dict[str, list[UUID]] = defaultdict(list)
    for resource in resources:
        parsed = parse_resource(resource)
        if parsed is not None:
            wanted[parsed[0]].append(parsed[1])
    states: dict[str, State] = {}
    for kind, ids in wanted.items():
        for state in _LOADERS[kind](actor, ids, now):
            states[state["resource"]] = state
    return states


def resources_on(
    actor: Actor, host_id: UUID, *, kinds: frozenset[str], known: frozenset[str]
) -> list[str]:
    """Names of what the actor sees of these kinds on the host, and of those already known."""
    found: list[str] = []
    for kind, model in _ON_HOSTS.items():
        ids = {name.partition(":")[2] for name in known if name.startswith(f"{kind}:")}
        if not ids and kind not in kinds:
            continue
        rows = model.objects.visible_to(actor).filter(host_id=host_id).values_list("pk", flat=True)
        followed = [pk for pk in rows if kind in kinds or str(pk) in ids]
        found += [f"{kind}:{pk}" for pk in followed]
    return found


def parse_resource(resource: str) -> tuple[str, UUID] | None:
    kind, _, text = resource.partition(":")
    if kind not in KINDS:
        return None
    try:
        return kind, UUID(text)
    except ValueError:
        return None


def workspace_state(workspace: Workspace, now: datetime) -> State:
    badge = workspace_badge(workspace)
    state = _state_on("workspace", workspace, badge, workspace.message, now)
    return state | {
        "revision": workspace.revision,
        "observed_revision": workspace.observed_revision,
        "observed_at": workspace.observed_at.isoformat() if workspace.observed_at else None,
        "warning": stop_warning(workspace, now),
    }


def host_state(host: Host, now: datetime) -> State:
    fresh = is_heard(host, now)
    state = _state("host", host.id, host_badge(host, now), host_message(host), fresh=fresh)
    return state | {
        "revision": host.revision,
        "last_heartbeat": host.last_heartbeat.isoformat() if host.last_heartbeat else None,
        "stale_since": None if fresh else _iso(host.last_heartbeat),
    }


def image_state(image: Image, message: str, now: datetime) -> State:
    badge = image_badge_of(image)
    state = _state_on("image", image, badge, message, now)
    return state | {
        "revision": image.revision,
        "progress": image.progress,
        "update_available": update_available(image),
    }


def registry_state(registry: Registry, now: datetime) -> State:
    badge, message = registry_badge(registry, now), registry_message(registry, now)
    return _state("registry", registry.id, badge, message, fresh=True)


def stack_state(stack: Stack, now: datetime) -> State:
    state = _state_on("stack", stack, stack_badge(stack), stack.message, now)
    return state | {
        "revision": stack.revision,
        "deployed_commit": stack.deployed_commit,
        "available_commit": stack.available_commit,
    }


def _resource_state(kind: str, row: Network | Volume, now: datetime) -> State:
    badge = resource_badge(row.status)
    state = _state_on(kind, row, badge, row.message, now)
    return state | {"revision": row.revision}


def _state(kind: str, object_id: UUID, badge: Badge, message: str, *, fresh: bool) -> State:
    return {
        "resource": f"{kind}:{object_id}",
        "status": badge.value,
        "status_label": badge.label,
        "colour": badge.colour,
        "busy": badge.busy,
        "message": message,
        "fresh": fresh,
        "allowed_actions": list(badge.actions),
    }


def _state_on(kind: str, row: OnHost, badge: Badge, message: str, now: datetime) -> State:
    """Of something on a host, which must be loaded."""
    host = row.host
    state = _state(kind, row.pk, badge, object_message(host, message), fresh=is_fresh(host, now))
    return state | {"stale_since": _iso(stale_since(host, now))}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _for(actor: Actor, row: Model, state: State) -> State:
    """The status allows an action to everybody; the actor's role may not."""
    return state | {"allowed_actions": policy.allowed_of(actor, row, state["allowed_actions"])}


def _workspaces(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = (
        Workspace.objects.visible_to(actor)
        .with_role(actor)
        .select_related("host", "timer")
        .filter(pk__in=ids)
    )
    return [_for(actor, row, workspace_state(row, now)) for row in rows]


def _hosts(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    return [
        _for(actor, row, host_state(row, now))
        for row in Host.objects.visible_to(actor).filter(pk__in=ids)
    ]


def _images(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = (
        Image.objects.visible_to(actor).with_role(actor).select_related("host").filter(pk__in=ids)
    )
    return [
        _for(actor, row, image_state(row, image_message(actor, row, now), now)) for row in rows
    ]


def _networks(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = (
        Network.objects.visible_to(actor)
        .with_role(actor)
        .select_related("host")
        .filter(pk__in=ids)
    )
    return [_for(actor, row, _resource_state("network", row, now)) for row in rows]


def _volumes(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = (
        Volume.objects.visible_to(actor).with_role(actor).select_related("host").filter(pk__in=ids)
    )
    return [_for(actor, row, _resource_state("volume", row, now)) for row in rows]


def _registries(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = Registry.objects.visible_to(actor).select_related("test__host").filter(pk__in=ids)
    return [_for(actor, row, registry_state(row, now)) for row in rows]


def _stacks(actor: Actor, ids: list[UUID], now: datetime) -> list[State]:
    rows = (
        Stack.objects.visible_to(actor).with_role(actor).select_related("host").filter(pk__in=ids)
    )
    return [_for(actor, row, stack_state(row, now)) for row in rows]


_ON_HOSTS: dict[str, type[OnHost]] = {
    "workspace": Workspace,
    "image": Image,
    "network": Network,
    "volume": Volume,
    "stack": Stack,
}

_LOADERS: dict[str, Callable[[Actor, list[UUID], datetime], list[State]]] = {
    "workspace": _workspaces,
    "host": _hosts,
    "image": _images,
    "network": _networks,
    "volume": _volumes,
    "registry": _registries,
    "stack": _stacks,
    "usage": usage_states,
    "events": events_states,
}
