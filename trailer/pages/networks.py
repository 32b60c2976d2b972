"""Pages of networks: the list, with the form that makes a new one, and one network."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, Prefetch, Q
from django.shortcuts import get_object_or_404

from hosts.choices import NetworkDriver
from hosts.models import Network
from trailer.pages.access import access_context, may_share
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView, list_page, query_without_part
from workspaces.models import Workspace


class NetworkListView(PageView):
    template_name = "networks/list.html"
    parts: ClassVar = {"rows": "networks/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Network.objects.visible_to(self.user)
        search = self.request.GET.get("search", "").strip()
        found = Q(name__icontains=search) | Q(subnet__icontains=search)
        seen = Workspace.objects.visible_to(self.user).only("pk", "name").order_by("name")
        rows = (
            mine.filter(found | Q(host__name__icontains=search))
            .with_role(self.user)
            .select_related("host")
            .annotate(used_by=Count("workspaces"))
            .prefetch_related(Prefetch("workspaces", seen, to_attr="users"))
        )
        page = list_page(rows.order_by("name", "pk"), self.request)
        return super().get_context_data(
            page=page,
            networks=page.object_list,
            any_at_all=bool(page.object_list) or mine.exists(),
            search=search,
            query=query_without_part(self.request.GET, "page"),
            hosts=hosts_to_choose(self.user, "host.networks"),
            choosers=[host for host, _ in hosts_to_choose(self.user, "host.addresses")],
            drivers=NetworkDriver.choices,
            **kwargs,
        )


class NetworkView(PageView):
    template_name = "networks/detail.html"
    parts: ClassVar = {
        "facts": "networks/_facts.html",
        "access": "access/_grants.html",
        "users": "access/_users.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Network.objects.visible_to(self.user).select_related("host", "owner")
        network = get_object_or_404(rows, pk=kwargs["pk"])
        # nosemgrep: unscoped-read (counted; shown if visible)
        attached = Workspace.objects.filter(networks=network)
        seen = attached.filter(pk__in=Workspace.objects.visible_to(self.user).values("pk"))
        return super().get_context_data(
            network=network,
            workspaces=seen.select_related("host").order_by("name"),
            used_by=attached.count(),
            **(access_context(self.user, network) if may_share(self.user, network) else {}),
            **kwargs,
        )
