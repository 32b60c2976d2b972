"""Pages of hosts: the fleet, and one host with its facts, settings and recent cycles."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count
from django.shortcuts import get_object_or_404

from hosts.choices import RouterMode
from hosts.models import Host
from trailer.pages.page import PageView
from trailer.pages.workspace_list import with_parts
from workspaces.models import Workspace

_CYCLES_SHOWN = 30
TABS = (
    ("overview", "Overview"),
    ("workspaces", "Workspaces"),
    ("cycles", "Cycles"),
    ("settings", "Settings"),
)


class HostListView(PageView):
    template_name = "hosts/list.html"
    parts: ClassVar = {"rows": "hosts/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        hosts = Host.objects.visible_to(self.user).annotate(
            workspace_count=Count("workspaces", distinct=True)
        )
        return super().get_context_data(hosts=hosts, **kwargs)


class HostView(PageView):
    template_name = "hosts/detail.html"
    parts: ClassVar = {
        "tab": "hosts/_tab.html",
        "facts": "hosts/_facts.html",
        "cycles": "hosts/_cycles.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        host = get_object_or_404(Host.objects.visible_to(self.user), pk=kwargs["pk"])
        tab = self.request.GET.get("tab", "")
        tab = tab if tab in dict(TABS) else TABS[0][0]
        context: dict[str, Any] = {"host": host, "tab": tab, "tabs": TABS}
        if tab == "cycles":
            context["cycles"] = host.cycles.all()[:_CYCLES_SHOWN]
        elif tab == "settings":
            context["router_modes"] = RouterMode.choices
        elif tab == "workspaces":
            mine = Workspace.objects.visible_to(self.user).filter(host=host)
            context["workspaces"] = with_parts(mine).order_by("name")
        return super().get_context_data(**context, **kwargs)
