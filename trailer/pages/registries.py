"""The list of registry credentials, with the form that makes a new one."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count

from images.models import Registry
from trailer.pages.page import PageView


class RegistryListView(PageView):
    template_name = "registries/list.html"
    parts: ClassVar = {"rows": "registries/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Registry.objects.visible_to(self.user).annotate(used_by=Count("images"))
        return super().get_context_data(registries=rows.order_by("server"), **kwargs)
