"""The first page: the fleet at a glance, and what needs somebody's attention."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils import timezone

from hosts.choices import HostStatus, ResourceStatus
from hosts.models import Host, Network, Volume
from hosts.status import engine_sentence, host_message, host_status
from images.choices import BuildStatus
from images.models import Image
from images.told import image_message
from trailer.pages.hosts import disk_of
from trailer.pages.page import PageView
from trailer.pages.story import newest_lines_of_all
from trailer.pages.workspace_list import count_by_status, in_status, with_parts
from trailer.quantities import rough_size
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.stacks.choices import StackStatus
from workspaces.stacks.models import Stack
from workspaces.status import BADGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from trailer.accounts.models import User

_RECENT = 15
_MOST_TROUBLES = 6
_MOST_BUILDS = 6
_MOST_EVENTS = 10
# In the order in which they stand in the bar.
_SHARES = (("running", "green"), ("busy", "blue"), ("error", "red"), ("stopped", "grey"))


@dataclass(frozen=True)
class Trouble:
    """One thing to look at: what, where to go, and why."""

    address: str
    noun: str
    name: str
    sentence: str


@dataclass(frozen=True)
class Share:
    """A piece of the bar of all workspaces, in percent of its length."""

    name: str
    colour: str
    start: float
    width: float


class DashboardView(PageView):
    template_name = "dashboard.html"
    parts: ClassVar = {
        "summary": "dashboard/_summary.html",
        "hosts": "dashboard/_hosts.html",
        "workspaces": "dashboard/_workspaces.html",
        "builds": "dashboard/_builds.html",
        "events": "dashboard/_events.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        hosts = list(Host.objects.visible_to(self.user))
        workspaces = Workspace.objects.visible_to(self.user)
        images = Image.objects.visible_to(self.user)
        counts = _counts(self.user)
        under_way = images.filter(status__in=[BuildStatus.PENDING, BuildStatus.BUILDING])
        troubles = _troubles(self.user, hosts)
        return super().get_context_data(
            hosts=hosts,
            hosts_online=sum(_status(host) == HostStatus.ONLINE for host in hosts),
            counts=counts,
            shares=_shares(counts),
            workspaces=_recent(workspaces.with_role(self.user), self.user),
            workspace_count=sum(counts.values()),
            builds=under_way.with_role(self.user)
            .select_related("host")
            .order_by("-updated_at")[:_MOST_BUILDS],
            builds_under_way=under_way.count(),
            image_count=images.count(),
            events=newest_lines_of_all(workspaces.with_role(self.user), self.user, _MOST_EVENTS),
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


def _shares(counts: dict[str, int]) -> list[Share]:
    total = sum(counts.values())
    shares: list[Share] = []
    start = 0.0
    for name, colour in _SHARES:
        if counts[name]:
            width = 100 * counts[name] / total
            shares.append(Share(name, colour, round(start, 2), round(width, 2)))
            start += width
    return shares


def _recent(workspaces: QuerySet[Workspace], user: User) -> QuerySet[Workspace]:
    return with_parts(workspaces, user).order_by("-updated_at")[:_RECENT]


def _troubles(user: User, hosts: list[Host]) -> list[Trouble]:
    """Hosts first: one that is silent or full is the reason for much else."""
    found = [trouble for host in hosts if (trouble := _host_trouble(host))]
    # What things lie on before what lies on them.
    networks = Network.objects.visible_to(user).filter(status=ResourceStatus.ERROR)
    volumes = Volume.objects.visible_to(user).filter(status=ResourceStatus.ERROR)
    stacks = Stack.objects.visible_to(user).filter(status=StackStatus.FAILED)
    failed = in_status(Workspace.objects.visible_to(user), WorkspaceStatus.ERROR)
    images = Image.objects.visible_to(user).with_role(user).filter(status=BuildStatus.FAILED)
    found += _failures(networks, "Network", "It could not be made.")
    found += _failures(volumes, "Volume", "It could not be made.")
    found += _failures(stacks, "Stack", "Its last sync has failed.")
    found += _failures(failed, "Workspace", "It has failed.")
    now = timezone.now()
    found += _failures(
        images,
        "Image",
        "Its build has failed.",
        lambda image: image_message(user, image, now),
    )
    return found


def _failures(
    rows: QuerySet[Any],
    noun: str,
    sentence: str,
    told: Callable[[Any], str] = attrgetter("message"),
) -> list[Trouble]:
    newest = rows.order_by("-updated_at")[: _MOST_TROUBLES * 10]
    collection = f"/{noun.lower()}s"
    return [
        Trouble(f"{collection}/{row.pk}/", noun, row.name, told(row) or sentence) for row in newest
    ]


def _host_trouble(host: Host) -> Trouble | None:
    if _status(host) == HostStatus.OFFLINE:
        sentence = "Its agent is silent. Check the machine, its network and the agent."
    elif host.engine_silent_since is not None:
        sentence = engine_sentence(host)
    elif (disk := disk_of(host)) is not None and disk.is_low:
        sentence = (
            f"Only {rough_size(disk.free)} of its disk is free: nothing new is pulled, built or "
            "snapshotted. Delete unused images."
        )
    else:
        return None
    return Trouble(f"/hosts/{host.pk}/", "Host", host.name, host_message(host) or sentence)
