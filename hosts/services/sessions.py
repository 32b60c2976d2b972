"""What an agent says about itself and its host: session, heartbeat, and falling silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from hosts.services.observed import reported_time
from hosts.status import is_fresh, silence_limit
from trailer import events
from trailer.errors import Conflict
from trailer.rows import row_lock
from trailer.validation import LIST_LIMIT, stored_number, stored_text

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from agent.protocol.session import Heartbeat, SessionRequest

# These move all the time; the rest is worth telling the browsers when it moves.
_QUIET_COLUMNS = frozenset({"disk_free_bytes", "clock_skew_seconds", "address_ranges"})
_MESSAGE_LIMIT = 4096
_INTEGER = 2**31 - 1


def host_session_open(host: Host, request: SessionRequest) -> int:
    """A new epoch; whatever still runs with an older one is refused from now on."""
    with transaction.atomic():
        # An agent of another version may not say which addresses are taken.
        Host.objects.filter(pk=host.pk).update(
            epoch=F("epoch") + 1,
            agent_version=stored_text(request.agent_version, 64),
            address_ranges=None,
        )
        epoch = Host.objects.values_list("epoch", flat=True).get(pk=host.pk)
        events.publish("host", host.pk)
    return epoch


def host_heartbeat(host: Host, heartbeat: Heartbeat) -> bool:
    """Store what was heard. True when the host was silent: its workspaces are fresh again."""
    now = timezone.now()
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        if heartbeat.epoch < current.epoch:
            raise Conflict(
                f"A newer agent of host {current.name} has taken over.", code="superseded"
            )
        came_back = current.silent_published or not is_fresh(current, now)
        observed = _observed(heartbeat, now)
        changed = {k: v for k, v in observed.items() if getattr(current, k) != v}
        Host.objects.filter(pk=host.pk).update(
            **changed, last_heartbeat=now, silent_published=False
        )
        if "capabilities" in changed:
            # What an agent can't do is kept from it.
            host_desired_changed(host.pk)
        if came_back or set(changed) - _QUIET_COLUMNS:
            events.publish("host", host.pk)
    return came_back


def hosts_mark_silent(now: datetime) -> list[UUID]:
    """Hosts that have just fallen silent; the caller tells the followers of their workspaces."""
    silent = []
    for host in Host.objects.filter(silent_published=False, last_heartbeat__isnull=False):
        if host.last_heartbeat is None or now - host.last_heartbeat <= silence_limit(host):
            continue
        # Guarded: a heartbeat that arrives right now keeps the host fresh.
        with transaction.atomic():
            marked = Host.objects.filter(
                pk=host.pk, last_heartbeat=host.last_heartbeat, silent_published=False
            ).update(silent_published=True)
            if marked:
                events.publish("host", host.pk)
                silent.append(host.pk)
    return silent


def next_beat(host: Host, now: datetime) -> float:
    """Seconds until this host's own place in its interval: agents that came all at once, after a
    restart of the server, are spread evenly with their next beat, and stay so."""
    interval = float(host.heartbeat_interval)
    place = host.pk.int % 10_000 / 10_000 * interval
    wait = (place - now.timestamp() % interval) % interval
    return round(wait if wait >= interval / 2 else wait + interval, 3)


def _skew(heartbeat: Heartbeat, now: datetime) -> int | None:
    """How far the agent's clock is ahead; shown to people, nothing is decided by it."""
    told = reported_time(heartbeat.agent_time)
    if told is None:
        return None
    return max(-_INTEGER, min(_INTEGER, round((told - now).total_seconds())))


def _observed(heartbeat: Heartbeat, now: datetime) -> dict[str, Any]:
    """Columns to store. What an agent can't tell while its engine is down keeps its last value."""
    columns: dict[str, Any] = {
        "agent_version": stored_text(heartbeat.agent_version, 64),
        "message": stored_text(heartbeat.message, _MESSAGE_LIMIT),
        "agent_image_running": stored_text(heartbeat.agent_image, 255),
        "update_image": stored_text(heartbeat.update_image, 255),
        "agent_image_id": stored_text(heartbeat.agent_image_id, 255),
        "update_order": stored_number(heartbeat.update_order),
        "update_message": stored_text(heartbeat.update_message, _MESSAGE_LIMIT),
        "metadata_guard": stored_text(heartbeat.metadata_guard, 20),
        "metadata_message": stored_text(heartbeat.metadata_message, _MESSAGE_LIMIT),
        "interfaces": _plain(heartbeat.interfaces),
        "disk_free_bytes": stored_number(heartbeat.disk_free_bytes),
        "disk_total_bytes": stored_number(heartbeat.disk_total_bytes),
        "clock_skew_seconds": _skew(heartbeat, now),
    }
    if heartbeat.address_ranges is not None:
        columns["address_ranges"] = _plain(heartbeat.address_ranges)
    if heartbeat.engine is not None:
        columns["engine"] = _plain(heartbeat.engine)
        columns["capabilities"] = sorted(_plain(heartbeat.capabilities))
        columns["gpus"] = _plain(heartbeat.gpus)
    if heartbeat.cpu_count:
        columns["cpu_count"] = stored_number(heartbeat.cpu_count, _INTEGER)
    if heartbeat.memory_bytes:
        columns["memory_bytes"] = stored_number(heartbeat.memory_bytes)
    return columns


def _plain(value: Any) -> Any:
    """JSON as the database stores it: NUL stripped, lists bounded."""
    value = msgspec.to_builtins(value)
    if isinstance(value, str):
        return stored_text(value, 1024)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:LIST_LIMIT]]
    return value
