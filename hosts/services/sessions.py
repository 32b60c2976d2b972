"""What an agent says about itself and its host: session, heartbeat, and falling silent."""

from __future__ import annotations

from datetime import timedelta
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
_LONGEST_SILENCE = timedelta(days=365)
# What agents without pings say of an engine that is gone or frozen. That a call "has not answered
# for 7 seconds", as they also say, may be a container that takes its time to stop.
_SILENT_WORDS = (
    "The container engine cannot be reached",
    "The container engine did not answer in time",
)
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
    """Store what was heard. True when that turns what runs on the host fresh or stale, of which
    its followers get one message."""
    now = timezone.now()
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        if heartbeat.epoch < current.epoch:
            raise Conflict(
                f"A newer agent of host {current.name} has taken over.", code="superseded"
            )
        was_fresh = is_fresh(current, now) and not current.silent_published
        observed = _observed(heartbeat, now)
        observed["engine_silent_since"] = _engine_silent_since(heartbeat, current, now)
        changed = {k: v for k, v in observed.items() if getattr(current, k) != v}
        Host.objects.filter(pk=host.pk).update(
            **changed, last_heartbeat=now, silent_published=False
        )
        if "capabilities" in changed:
            # What an agent can't do is kept from it.
            host_desired_changed(host.pk)
        turned = was_fresh != (observed["engine_silent_since"] is None)
        if turned or current.silent_published or set(changed) - _QUIET_COLUMNS:
            events.publish("host", host.pk)
        if turned:
            events.publish_freshness(host.pk)
    return turned


def hosts_mark_silent(now: datetime) -> list[UUID]:
    """Publish the hosts that have just fallen silent, once each; returns their ids."""
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
                events.publish_freshness(host.pk)
                silent.append(host.pk)
    return silent


def next_beat(host: Host, now: datetime) -> float:
    """Seconds until this host's own place in its interval: agents that came all at once, after a
    restart of the server, are spread evenly with their next beat, and stay so."""
    interval = float(host.heartbeat_interval)
    place = host.pk.int % 10_000 / 10_000 * interval
    wait = (place - now.timestamp() % interval) % interval
    return round(wait if wait >= interval / 2 else wait + interval, 3)


def _engine_silent_since(heartbeat: Heartbeat, current: Host, now: datetime) -> datetime | None:
    """None while the engine answers. The start of a silence stays what was heard first; it is
    told by the agent's clock and kept by ours."""
    if not _is_engine_silent(heartbeat):
        return None
    if current.engine_silent_since is not None:
        return current.engine_silent_since
    told = reported_time(heartbeat.engine_silent_since or "")
    sent = reported_time(heartbeat.agent_time)
    if told is None or sent is None:
        return now
    return now - min(max(sent - told, timedelta()), _LONGEST_SILENCE)


def _is_engine_silent(heartbeat: Heartbeat) -> bool:
    """Agents that do not ping their engine say it in their message alone."""
    if heartbeat.engine_silent_since is not None:
        return bool(heartbeat.engine_silent_since)
    return heartbeat.message.startswith(_SILENT_WORDS)


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
