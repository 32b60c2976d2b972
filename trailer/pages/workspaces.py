"""Pages of one workspace, and the form that makes a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone

from images.choices import ImageKind
from images.models import Image
from images.services.snapshots import snapshots_of
from trailer import policy
from trailer.pages.access import access_context
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView
from trailer.pages.revisions import revisions_page
from trailer.pages.story import newest_lines, story_page
from trailer.pages.workspace_form import blank_form, form_of, options_for
from workspaces.models import Workspace
from workspaces.stacks.models import Stack
from workspaces.timers.told import timer_told

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from hosts.models import Volume
    from trailer.accounts.models import User

_SNAPSHOTS_SHOWN = 20
_EVENTS_SHOWN = 5

TABS = (
    ("overview", "Overview"),
    ("logs", "Logs"),
    ("terminal", "Terminal"),
    ("metrics", "Metrics"),
    ("events", "Events"),
    ("revisions", "Revisions"),
    ("settings", "Settings"),
    ("access", "Access"),
    ("danger", "Danger zone"),
)
_NEEDED = {
    "logs": "workspace.logs",
    "terminal": "workspace.exec",
    "revisions": "workspace.inspect",
    "settings": "workspace.modify",
    "access": "workspace.share",
    "danger": "workspace.delete",
}


# What the file of its stack says of a service is not said by hand.
_NOT_OF_A_STACK = frozenset({"settings", "revisions", "danger"})


def tabs_for(user: User, workspace: Workspace) -> list[tuple[str, str]]:
    return [
        (name, words)
        for name, words in TABS
        if (name not in _NEEDED or policy.allows(user, _NEEDED[name], workspace))
        and not (workspace.stack and name in _NOT_OF_A_STACK)
    ]


def _without_their_data(workspace: Workspace) -> list[Volume]:
    """Volumes that it mounts and whose data is gone; needs the mounts prefetched."""
    volumes = {mount.volume for mount in workspace.mounts.all() if mount.volume.data_gone_at}
    return sorted(volumes, key=lambda volume: volume.name)


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
        # The same, and the address follows its filters.
        "rows": "workspaces/_events.html",
        "revisions": "workspaces/_revisions.html",
        "access": "access/_grants.html",
        "snapshots": "workspaces/_snapshots.html",
        "timer": "workspaces/_timer.html",
        "lost": "workspaces/_lost_data.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        workspace = self._workspace(kwargs["pk"])
        tab = self.request.GET.get("tab", "")
        tabs = tabs_for(self.user, workspace)
        tab = tab if tab in dict(tabs) else TABS[0][0]
        context: dict[str, Any] = {"workspace": workspace, "tab": tab, "tabs": tabs}
        now = timezone.now()
        context |= {"timer": timer_told(workspace, now), "today": now.date()}
        context["lost_volumes"] = _without_their_data(workspace)
        if workspace.stack:
            # nosemgrep: unscoped-read (the name of a visible one's stack)
            context["of_stack"] = Stack.objects.filter(pk=workspace.stack).first()
        if not self.is_part:
            context["hosts"] = hosts_to_choose(self.user, "host.workspaces")
        return super().get_context_data(**context, **self._of_tab(tab, workspace), **kwargs)

    def _of_tab(self, tab: str, workspace: Workspace) -> dict[str, Any]:
        if tab == "events":
            return story_page(workspace, self.user, self.request)
        if tab == "revisions":
            return {"revisions": revisions_page(workspace, self.request)}
        if tab == "access":
            return access_context(self.user, workspace)
        if tab == "settings":
            options = options_for(self.user, host=workspace.host, workspace=workspace)
            return {"options": options, "form": form_of(workspace)}
        if tab == "overview":
            return {
                "last_events": newest_lines(workspace, self.user, _EVENTS_SHOWN),
                "snapshots": self._snapshots(workspace),
                "others_snapshots": self._others_snapshots(workspace),
            }
        return {}

    def _snapshots(self, workspace: Workspace) -> QuerySet[Image]:
        rows = Image.objects.visible_to(self.user).filter(
            kind=ImageKind.SNAPSHOT, source_workspace=workspace.pk, host=workspace.host
        )
        shown = rows.with_role(self.user).select_related("host")
        return shown.order_by("-created_at")[:_SNAPSHOTS_SHOWN]

    def _others_snapshots(self, workspace: Workspace) -> QuerySet[Image] | None:
        """Those that belong to somebody else than the workspace, for whom it is theirs."""
        if not policy.allows(self.user, "workspace.snapshots", workspace):
            return None
        rows = snapshots_of(actor=self.user, workspace=workspace)
        return rows.exclude(owner=workspace.owner_id)[:_SNAPSHOTS_SHOWN]

    def _workspace(self, pk: UUID) -> Workspace:
        rows = Workspace.objects.visible_to(self.user).select_related(
            "host", "image", "owner", "timer"
        )
        rows = rows.prefetch_related("ports", "urls", "env_vars", "networks", "mounts__volume")
        return get_object_or_404(rows, pk=pk)
