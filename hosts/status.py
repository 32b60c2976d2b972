"""Status of hosts, networks and volumes: label, colour, busy flag; the only place that knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hosts.choices import HostStatus, ResourceStatus

if TYPE_CHECKING:
    from hosts.models import Host

MISSED_HEARTBEATS = 3
# A ping every 20 s and 30 s for its answer: by then a connection whose other end is gone is over.
_CONNECTION_ENDS = timedelta(seconds=60)


@dataclass(frozen=True)
class Badge:
    """What API, pages and sockets show of one status."""

    value: str
    label: str
    # One of: green, blue, amber, red, grey; templates map it to their palette.
    colour: str
    busy: bool = False
    actions: tuple[str, ...] = ()


HOST_BADGES = {
    HostStatus.PENDING: Badge("pending", "Pending", "grey", actions=("enrol", "disable")),
    HostStatus.ONLINE: Badge("online", "Online", "green", actions=("disable", "revoke")),
    HostStatus.OFFLINE: Badge("offline", "Offline", "red", actions=("enrol", "disable", "revoke")),
    HostStatus.DISABLED: Badge("disabled", "Disabled", "grey", actions=("enable", "delete")),
}

RESOURCE_BADGES = {
    ResourceStatus.PENDING: Badge("pending", "Pending", "blue", busy=True),
    ResourceStatus.CREATED: Badge("created", "Created", "green"),
    ResourceStatus.ERROR: Badge("error", "Error", "red"),
}


def silence_limit(host: Host) -> timedelta:
    return timedelta(seconds=MISSED_HEARTBEATS * host.heartbeat_interval)


def is_fresh(host: Host, now: datetime) -> bool:
    """Whether what we know of this host is still to be trusted."""
    if host.last_heartbeat is None or host.agent_revoked_at is not None:
        return False
    return now - host.last_heartbeat <= silence_limit(host)


def host_status(host: Host, now: datetime) -> HostStatus:
    if not host.enabled:
        return HostStatus.DISABLED
    if host.last_heartbeat is None:
        return HostStatus.PENDING
    return HostStatus.ONLINE if is_fresh(host, now) else HostStatus.OFFLINE


def is_out_of_reach(host: Host, now: datetime) -> bool:
    """Whether nobody need ask its agent's socket. Late heartbeats alone do not say so: on a busy
    machine some are missed while the connection carries everything."""
    if host_status(host, now) not in (HostStatus.PENDING, HostStatus.OFFLINE):
        return False
    if host.last_heartbeat is None or host.agent_revoked_at is not None:
        return True
    return now - host.last_heartbeat > _CONNECTION_ENDS


def host_message(host: Host) -> str:
    if host.agent_revoked_at is not None:
        return (
            "The agent of this host was shut out. What it runs stays as it is; connect an agent "
            "to manage it again."
        )
    if not host.message and host.update_message:
        image = host.update_image or "a newer image"
        return f"The agent could not be replaced by {image}: {host.update_message}"
    return host.message


def host_badge(host: Host, now: datetime) -> Badge:
    return HOST_BADGES[host_status(host, now)]


def resource_badge(status: str) -> Badge:
    return RESOURCE_BADGES[ResourceStatus(status)]
