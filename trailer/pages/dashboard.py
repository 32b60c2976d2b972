"""The first page: the fleet at a glance, and what needs somebody's attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils import timezone

from hosts.choices import HostStatus
from hosts.models import Host
from hosts.status import host_status
from images.choices import BuildStatus
from images.models import Image
from trailer.pages.page import PageView
from trailer.pages.workspace_list import count_by_status, with_parts
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.status import BADGES

if TYPE_CHECKING:
    from trailer.accounts.models import User

_RECENT = 25
_MOST_TROUBLES = 6


@dataclass(frozen=True)
class Trouble:
    """One thing to look at: what, where to go, and why."""

    address: str
    noun: str
    name: str
    sentence: str


class DashboardView(PageView):
    template_name = "dashboard.html"
    parts: ClassVar = {
        "summary": "dashboard/_summary.html",
        "hosts": "dashboard/_hosts.html",
        "workspaces": "dashboard/_workspaces.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        hosts = list(Host.objects.visible_to(self.user))
        workspaces = Workspace.objects.visible_to(self.user)
        images = Image.objects.visible_to(self.user)
        recent = list(with_parts(workspaces).order_by("-updated_at")[:_RECENT])
        troubles = _troubles(self.user, hosts)
        return super().get_context_data(
            hosts=hosts,
            hosts_online=sum(_status(host) == HostStatus.ONLINE for host in hosts),
            counts=_counts(self.user),
            workspaces=recent,
            workspace_count=workspaces.count(),
            builds_under_way=images.filter(
                status__in=[BuildStatus.PENDING, BuildStatus.BUILDING]
            ).count(),
            image_count=images.count(),
            troubles=troubles[:_MOST_TROUBLES],
            more_troubles=max(0, len(troubles) - _MOST_TROUBLES),
            **kwargs,
        )


def _status(host: Host) -> HostStatus:
    return host_status(host, timezone.now())


def _counts(user: User) -> dict[str, int]:
    """Workspaces by what they mean to a reader: running, busy, stopped, error."""
    counts = {"running": 0, "busy": 0, "stopped": 0, "error": 0}
    for status, count in count_by_status(Workspace.objects.visible_to(user)).items():
        badge = BADGES[WorkspaceStatus(status)]
        counts["busy" if badge.busy else badge.value] += count
    return counts


def _troubles(user: User, hosts: list[Host]) -> list[Trouble]:
    found = [
        Trouble(
            f"/hosts/{host.pk}/",
            "Host",
            host.name,
            host.message or "Its agent is silent. Check the machine, its network and the agent.",
        )
        for host in hosts
        if _status(host) == HostStatus.OFFLINE
    ]
    failed = Workspace.objects.visible_to(user).filter(observed_status=WorkspaceStatus.ERROR)
    found += [
        Trouble(f"/workspaces/{row.pk}/", "Workspace", row.name, row.message or "It has failed.")
        for row in failed[: _MOST_TROUBLES * 10]
    ]
    images = Image.objects.visible_to(user).filter(status=BuildStatus.FAILED)
    found += [
        Trouble(f"/images/{row.pk}/", "Image", row.name, row.message or "Its build has failed.")
        for row in images[: _MOST_TROUBLES * 10]
    ]
    return found
