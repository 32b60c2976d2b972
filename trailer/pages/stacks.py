"""Pages of stacks: list, wizard, and one stack with its services, syncs and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.shortcuts import get_object_or_404

from trailer import policy
from trailer.pages.access import access_context
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView, list_page, query_without_part
from trailer.sealed import unseal_mapping
from workspaces.stacks.choices import StackStatus
from workspaces.stacks.models import Stack
from workspaces.stacks.selectors import stack_views
from workspaces.stacks.services.source import source_compare

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.accounts.models import User
    from workspaces.stacks.models import Sync

TABS = (
    ("overview", "Overview"),
    ("history", "History"),
    ("changes", "Changes"),
    ("settings", "Settings"),
    ("access", "Access"),
)
_NEEDED = {"settings": "stack.modify", "access": "stack.share"}


class StackListView(PageView):
    template_name = "stacks/list.html"
    parts: ClassVar = {"rows": "stacks/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Stack.objects.visible_to(self.user)
        rows = mine.with_role(self.user).select_related("host", "owner", "deployed")
        search = self.request.GET.get("search", "").strip()
        if search:
            rows = rows.filter(name__icontains=search) | rows.filter(repository__icontains=search)
        status = self.request.GET.get("status", "")
        if status:
            rows = rows.filter(status=status)
        page = list_page(rows.order_by("name"), self.request)
        return super().get_context_data(
            page=page,
            views=stack_views(page.object_list),
            any_at_all=bool(page.object_list) or mine.exists(),
            statuses=StackStatus.choices,
            search=search,
            status=status,
            query=query_without_part(self.request.GET, "page"),
            **kwargs,
        )


class StackCreateView(PageView):
    template_name = "stacks/new.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            hosts=hosts_to_choose(self.user, "host.workspaces"),
            chosen_host=self.request.GET.get("host", ""),
            **kwargs,
        )


class StackView(PageView):
    template_name = "stacks/detail.html"
    parts: ClassVar = {
        "tab": "stacks/_tab.html",
        "overview": "stacks/_overview.html",
        "history": "stacks/_history.html",
        "diff": "stacks/_diff.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        stack = self._stack(kwargs["pk"])
        tabs = tabs_for(self.user, stack)
        wanted = self.request.GET.get("tab", "")
        tab = wanted if wanted in dict(tabs) else TABS[0][0]
        return super().get_context_data(
            stack=stack, tab=tab, tabs=tabs, **self._of_tab(tab, stack), **kwargs
        )

    def _of_tab(self, tab: str, stack: Stack) -> dict[str, Any]:
        if tab == "access":
            return access_context(self.user, stack)
        if tab == "settings":
            return settings_context(stack)
        if tab == "changes":
            # The repository is asked only by the part, which comes after the page.
            is_part = self.is_part and self.request.GET["part"] == "diff"
            return {"found": source_compare(actor=self.user, stack=stack)} if is_part else {}
        syncs = stack.syncs.select_related("actor", "revision").defer("log")
        if tab == "history":
            page = list_page(syncs, self.request)
            chosen = _is_number(self.request.GET.get("sync", ""))
            return {"syncs": page, "shown_sync": self._shown(stack), "is_chosen": chosen}
        return {"view": stack_views([stack])[0], "shown_sync": self._shown(stack)}

    def _shown(self, stack: Stack) -> Sync | None:
        """The sync whose log is read: the chosen one, or the newest."""
        syncs = stack.syncs.select_related("actor", "revision")
        number = self.request.GET.get("sync", "")
        chosen = syncs.filter(number=int(number)) if _is_number(number) else syncs
        return chosen.order_by("-number").first()

    def _stack(self, pk: UUID) -> Stack:
        rows = Stack.objects.visible_to(self.user).with_role(self.user)
        return get_object_or_404(rows.select_related("host", "owner", "deployed"), pk=pk)


def tabs_for(user: User, stack: Stack) -> list[tuple[str, str]]:
    return [
        (name, words)
        for name, words in TABS
        if name not in _NEEDED or policy.allows(user, _NEEDED[name], stack)
    ]


def settings_context(stack: Stack) -> dict[str, Any]:
    """Names of secrets are shown, their values never are."""
    secrets = unseal_mapping(stack, "secret_variables_token")
    plain = [{"name": name, "value": value} for name, value in sorted(stack.variables.items())]
    hidden = [{"name": name, "secret": True} for name in sorted(secrets)]
    credential = unseal_mapping(stack, "credential_token")
    return {
        "variables": plain + hidden,
        "credential_kind": _credential_kind(credential),
        "webhook_url": f"{settings.TRAILER_PUBLIC_URL}/webhooks/stacks/{stack.pk}/",
    }


def _credential_kind(stored: dict[str, str]) -> str:
    if not stored:
        return ""
    return "A token" if stored.get("token") else "A deploy key"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
