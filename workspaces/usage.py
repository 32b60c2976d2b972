"""The latest use of a host and of those of its workspaces that the viewer may see, for bars."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from hosts.models import Host
from hosts.status import is_heard
from workspaces.models import Workspace

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from trailer.policy import Actor

_HOST = (
    *("cpu_percent", "memory_bytes", "memory_total_bytes"),
    *("disk_used_bytes", "disk_total_bytes", "load"),
)


def usage_states(actor: Actor, host_ids: list[UUID], now: datetime) -> list[dict[str, Any]]:
    """One frame per host, in two queries; a host without samples has empty values."""
    hosts = Host.objects.visible_to(actor).select_related("usage").filter(pk__in=host_ids)
    workspaces: dict[UUID, list[Workspace]] = defaultdict(list)
    seen = Workspace.objects.visible_to(actor).filter(host_id__in=host_ids)
    for workspace in seen.only("id", "host_id", "cpus").order_by():
        workspaces[workspace.host_id].append(workspace)
    return [_frame(host, workspaces[host.pk], now) for host in hosts]


def _frame(host: Host, workspaces: list[Workspace], now: datetime) -> dict[str, Any]:
    usage = getattr(host, "usage", None)
    known = usage.workspaces if usage is not None else {}
    return {
        "resource": f"usage:{host.pk}",
        "at": usage.at.isoformat() if usage is not None else None,
        "fresh": is_heard(host, now),
        "host": {name: getattr(usage, name, None) for name in _HOST},
        "workspaces": {
            str(workspace.pk): _bars(known[str(workspace.pk)], workspace, host)
            for workspace in workspaces
            if str(workspace.pk) in known
        },
    }


def _bars(latest: list[Any], workspace: Workspace, host: Host) -> dict[str, Any]:
    """`cpu_limit_percent` is a full bar: 100 for each CPU it may use."""
    cpus = float(workspace.cpus or host.cpu_count or 1)
    return {
        "cpu_percent": latest[0],
        "cpu_limit_percent": round(100 * cpus, 1),
        "memory_bytes": latest[1],
        "memory_limit_bytes": latest[2],
    }
