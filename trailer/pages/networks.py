"""The list of networks, with the form that makes a new one."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count

from hosts.choices import NetworkDriver
from hosts.models import Network
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView


class NetworkListView(PageView):
    template_name = "networks/list.html"
    parts: ClassVar = {"rows": "networks/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Network.objects.visible_to(self.user).select_related("host")
        return super().get_context_data(
            networks=rows.annotate(used_by=Count("workspaces")).order_by("name"),
            hosts=hosts_to_choose(self.user),
            drivers=NetworkDriver.choices,
            **kwargs,
        )
