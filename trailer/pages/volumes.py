"""Pages of volumes: the list, with the form that makes a new one, and one volume."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, Prefetch, Q
from django.shortcuts import get_object_or_404

from hosts.choices import VolumeKind
from hosts.models import Volume
from trailer.pages.access import access_context, may_share
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView, list_page, query_without_part
from workspaces.models import Mount, Workspace


class VolumeListView(PageView):
    template_name = "volumes/list.html"
    parts: ClassVar = {"rows": "volumes/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Volume.objects.visible_to(self.user)
        search = self.request.GET.get("search", "").strip()
        found = Q(name__icontains=search) | Q(source__icontains=search)
        seen = Mount.objects.filter(workspace__in=Workspace.objects.visible_to(self.user))
        seen = seen.select_related("workspace").order_by("workspace__name")
        rows = (
            mine.filter(found | Q(host__name__icontains=search))
            .with_role(self.user)
            .select_related("host")
            .annotate(used_by=Count("mounts__workspace", distinct=True))
            .prefetch_related(Prefetch("mounts", seen, to_attr="users"))
        )
        page = list_page(rows.order_by("name", "pk"), self.request)
        return super().get_context_data(
            page=page,
            volumes=page.object_list,
            any_at_all=bool(page.object_list) or mine.exists(),
            search=search,
            query=query_without_part(self.request.GET, "page"),
            hosts=hosts_to_choose(self.user, "host.volumes"),
            kinds=VolumeKind.choices,
            **kwargs,
        )


class VolumeView(PageView):
    template_name = "volumes/detail.html"
    parts: ClassVar = {
        "facts": "volumes/_facts.html",
        "access": "access/_grants.html",
        "users": "access/_users.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Volume.objects.visible_to(self.user).select_related("host", "owner")
        volume = get_object_or_404(rows, pk=kwargs["pk"])
        mounts = Mount.objects.filter(volume=volume)
        seen = mounts.filter(workspace__in=Workspace.objects.visible_to(self.user))
        return super().get_context_data(
            volume=volume,
            mounts=seen.select_related("workspace").order_by("workspace__name", "target"),
            used_by=mounts.values("workspace").distinct().count(),
            **(access_context(self.user, volume) if may_share(self.user, volume) else {}),
            **kwargs,
        )
