"""The list of networks, with the form that makes a new one."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, Prefetch, Q

from hosts.choices import NetworkDriver
from hosts.models import Network
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
            drivers=NetworkDriver.choices,
            **kwargs,
        )
