"""Pages of hosts: the fleet, and one host with its facts, settings and recent cycles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import Count, Q
from django.shortcuts import get_object_or_404
from django.utils import timezone

from hosts.agent_images.offer import update_image
from hosts.choices import RouterMode
from hosts.models import AgentRollout, Host
from hosts.prerequisites import router_warning
from hosts.selectors import (
    HoldersSeen,
    cycles_of,
    gpus_with_holders,
    held_cleanup_of,
    leftovers_of,
    prerequisites_shown,
)
from hosts.status import is_heard
from trailer import policy
from trailer.pages.access import capabilities_context
from trailer.pages.page import PageView
from trailer.pages.timeline import lanes_of
from trailer.pages.unused import unused_on
from trailer.pages.workspace_list import with_parts
from trailer.quantities import rough_duration
from workspaces.models import Workspace

_CYCLES_SHOWN = 30
_ROLLOUT_SHOWN = timedelta(days=1)
TABS = (("overview", "Overview"), ("workspaces", "Workspaces"), ("images", "Unused images"))
# The steps of cycles name everybody's workspaces.
ADMIN_TABS = (
    ("cycles", "Cycles"),
    ("leftovers", "Leftovers"),
    ("settings", "Settings"),
    ("access", "Access"),
)
# Less is what clocks without synchronisation drift in a day, or a slow connection.
_CLOCK_TOLERANCE = 60


@dataclass(frozen=True)
class Disk:
    """`is_low`: so little is free that nothing new is pulled, built or snapshotted."""

    free: int
    total: int
    used_percent: int
    is_low: bool


def disk_of(host: Host) -> Disk | None:
    """None until the agent has told."""
    free, total = host.disk_free_bytes, host.disk_total_bytes
    if free is None or not total:
        return None
    used = round(100 * (total - min(free, total)) / total)
    return Disk(free, total, used, free < host.disk_free_min_bytes)


def clock_trouble(host: Host) -> str:
    """How wrong the host's clock is, in words; empty while that is not worth a word."""
    skew = host.clock_skew_seconds
    if skew is None or abs(skew) <= _CLOCK_TOLERANCE:
        return ""
    return f"{rough_duration(timedelta(seconds=abs(skew)))} {'ahead' if skew > 0 else 'behind'}"


class HostListView(PageView):
    template_name = "hosts/list.html"
    parts: ClassVar = {"rows": "hosts/_rows.html", "rollout": "hosts/_rollout.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Workspace.objects.visible_to(self.user).order_by()
        hosts = Host.objects.visible_to(self.user).annotate(
            workspace_count=Count("workspaces", filter=Q(workspaces__in=mine), distinct=True)
        )
        context: dict[str, Any] = {"hosts": hosts.order_by("name")}
        if policy.allows(self.user, "host.create"):
            newest = AgentRollout.objects.prefetch_related("hosts__host").first()
            recent = newest is not None and timezone.now() - newest.created_at < _ROLLOUT_SHOWN
            context |= {
                "rollout": newest if recent else None,
                "agent_image": update_image(),
            }
        return super().get_context_data(**context, **kwargs)


class HostView(PageView):
    template_name = "hosts/detail.html"
    parts: ClassVar = {
        "tab": "hosts/_tab.html",
        "facts": "hosts/_facts.html",
        "health": "hosts/_health.html",
        "cycles": "hosts/_cycles.html",
        "workspaces": "hosts/_workspaces.html",
        "images": "hosts/_unused.html",
        "access": "hosts/_access.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        host = get_object_or_404(Host.objects.visible_to(self.user), pk=kwargs["pk"])
        may_modify = policy.allows(self.user, "host.modify", host)
        tabs = TABS + (ADMIN_TABS if may_modify else ())
        tab = self.request.GET.get("tab", "")
        tab = tab if tab in dict(tabs) else TABS[0][0]
        context: dict[str, Any] = {
            "host": host,
            "tab": tab,
            "tabs": tabs,
            "disk": disk_of(host),
            "fresh": is_heard(host, timezone.now()),
            "skew": clock_trouble(host),
            "held": held_cleanup_of(actor=self.user, host=host) if may_modify else "",
            "prerequisites": prerequisites_shown(host),
            "router_warning": router_warning(mode=host.router_mode, managed=host.router_managed),
            "gpus": gpus_with_holders(host, HoldersSeen(self.user)),
        }
        if tab == "cycles":
            context["lanes"] = lanes_of(cycles_of(actor=self.user, host=host)[:_CYCLES_SHOWN])
        elif tab == "leftovers":
            context["leftovers"] = leftovers_of(actor=self.user, host=host)
        elif tab == "settings":
            context["router_modes"] = RouterMode.choices
        elif tab == "access":
            context |= capabilities_context(self.user, host)
        elif tab == "images":
            context["unused"] = unused_on(host, self.user)
        elif tab == "workspaces":
            visible = Workspace.objects.visible_to(self.user).with_role(self.user)
            mine = visible.filter(host=host)
            context["workspaces"] = with_parts(mine, self.user).order_by("name")
        return super().get_context_data(**context, **kwargs)
