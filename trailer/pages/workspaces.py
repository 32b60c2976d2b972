"""Pages of one workspace, and the form that makes a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.shortcuts import get_object_or_404

from images.choices import ImageKind
from images.models import Image
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView, list_page
from trailer.pages.workspace_form import blank_form, form_of, options_for
from workspaces.models import Workspace

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

_SNAPSHOTS_SHOWN = 20

TABS = (("overview", "Overview"), ("events", "Events"), ("settings", "Settings"))


class WorkspaceCreateView(PageView):
    template_name = "workspaces/new.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        options = options_for(self.user)
        given = self.request.GET
        form = blank_form(options, host=given.get("host", ""), image=given.get("image", ""))
        return super().get_context_data(form=form, options=options, **kwargs)


class WorkspaceView(PageView):
    template_name = "workspaces/detail.html"
    parts: ClassVar = {
        "tab": "workspaces/_tab.html",
        "facts": "workspaces/_overview.html",
        "events": "workspaces/_events.html",
        "snapshots": "workspaces/_snapshots.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        workspace = self._workspace(kwargs["pk"])
        tab = self.request.GET.get("tab", "")
        tab = tab if tab in dict(TABS) else TABS[0][0]
        context = {"workspace": workspace, "tab": tab, "tabs": TABS}
        if not self.is_part:
            context["hosts"] = hosts_to_choose(self.user)
        if tab == "events":
            events = workspace.events.select_related("actor")
            context["events"] = list_page(events, self.request)
        elif tab == "settings":
            options = options_for(self.user, host=workspace.host)
            context |= {"options": options, "form": form_of(workspace)}
        else:
            context["last_events"] = workspace.events.select_related("actor")[:5]
            context["snapshots"] = self._snapshots(workspace)
        return super().get_context_data(**context, **kwargs)

    def _snapshots(self, workspace: Workspace) -> QuerySet[Image]:
        rows = Image.objects.visible_to(self.user).filter(
            kind=ImageKind.SNAPSHOT, source_workspace=workspace.pk, host=workspace.host
        )
        return rows.select_related("host").order_by("-created_at")[:_SNAPSHOTS_SHOWN]

    def _workspace(self, pk: UUID) -> Workspace:
        rows = Workspace.objects.visible_to(self.user).select_related("host", "image", "owner")
        rows = rows.prefetch_related("ports", "urls", "env_vars", "networks", "mounts__volume")
        return get_object_or_404(rows, pk=pk)
