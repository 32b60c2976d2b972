"""The list of volumes, with the form that makes a new one."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count

from hosts.choices import VolumeKind
from hosts.models import Volume
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView


class VolumeListView(PageView):
    template_name = "volumes/list.html"
    parts: ClassVar = {"rows": "volumes/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Volume.objects.visible_to(self.user).select_related("host")
        return super().get_context_data(
            volumes=rows.annotate(used_by=Count("mounts__workspace", distinct=True)).order_by(
                "name"
            ),
            hosts=hosts_to_choose(self.user),
            kinds=VolumeKind.choices,
            **kwargs,
        )
