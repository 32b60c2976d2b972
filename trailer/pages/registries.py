"""The list of registry credentials: made, tried, changed and deleted there."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import CharField, Count
from django.db.models.functions import Cast

from images.models import Registry
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView


class RegistryListView(PageView):
    template_name = "registries/list.html"
    parts: ClassVar = {"rows": "registries/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Registry.objects.visible_to(self.user).select_related("test__host")
        # Templates can only join text.
        rows = mine.annotate(used_by=Count("images"), key=Cast("pk", CharField()))
        return super().get_context_data(
            registries=rows.order_by("server", "username"),
            hosts=hosts_to_choose(self.user, "host.use"),
            **kwargs,
        )
