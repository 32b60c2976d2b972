"""Status of hosts, networks and volumes: label, colour, busy flag; the only place that knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hosts.choices import HostStatus, ResourceStatus
from trailer.storage import storage

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


def is_heard(host: Host, now: datetime) -> bool:
    """True while the host's agent speaks to this server, whether or not its engine answers it."""
    if host.last_heartbeat is None or host.agent_revoked_at is not None:
        return False
    return now - host.last_heartbeat <= silence_limit(host)


def is_fresh(host: Host, now: datetime) -> bool:
    """True if the status of what runs on this host can be trusted: its agent is heard, and the
    engine answers the agent. The only place that decides it for workspaces, images, networks,
    volumes and stacks."""
    return is_heard(host, now) and host.engine_silent_since is None


def stale_since(host: Host, now: datetime) -> datetime | None:
    """The last moment at which the status of what runs there was true; None while it is."""
    if is_fresh(host, now):
        return None
    silent = (host.engine_silent_since, None if is_heard(host, now) else host.last_heartbeat)
    return min((moment for moment in silent if moment is not None), default=None)


def engine_sentence(host: Host) -> str:
    """That the engine does not answer, and since when; empty while it does."""
    if host.engine_silent_since is None:
        return ""
    return f"The engine does not answer since {host.engine_silent_since:%Y-%m-%d %H:%M:%S} UTC."


def object_message(host: Host, message: str) -> str:
    """The message of a workspace, image, network, volume or stack on this host, after what makes
    its status doubtful."""
    return f"{engine_sentence(host)} {message}".strip()


def host_status(host: Host, now: datetime) -> HostStatus:
    if not host.enabled:
        return HostStatus.DISABLED
    if host.last_heartbeat is None:
        return HostStatus.PENDING
    return HostStatus.ONLINE if is_heard(host, now) else HostStatus.OFFLINE


def is_out_of_reach(host: Host, now: datetime) -> bool:
    """Whether nobody need ask its agent's socket. Late heartbeats alone do not say so: on a busy
    machine some are missed while the connection carries everything."""
    if host_status(host, now) not in (HostStatus.PENDING, HostStatus.OFFLINE):
        return False
    if host.last_heartbeat is None or host.agent_revoked_at is not None:
        return True
    return now - host.last_heartbeat > _CONNECTION_ENDS


def host_message(host: Host) -> str:
    if full := storage().trouble():
        # Nothing that its agent says can be stored.
        return full
    if host.agent_revoked_at is not None:
        return (
            "The agent of this host was shut out. What it runs stays as it is; connect an agent "
            "to manage it again."
        )
    message = object_message(host, host.message)
    if not message and host.update_message:
        image = host.update_image or "a newer image"
        return f"The agent could not be replaced by {image}: {host.update_message}"
    return message


def host_badge(host: Host, now: datetime) -> Badge:
    return HOST_BADGES[host_status(host, now)]


def resource_badge(status: str) -> Badge:
    return RESOURCE_BADGES[ResourceStatus(status)]
