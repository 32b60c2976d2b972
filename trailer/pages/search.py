"""The command palette's answers: pages, objects and actions that fit the words typed so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Q, When
from django.urls import reverse

from hosts.models import Host, Network, Volume
from images.models import Image
from trailer import policy
from trailer.pages.badges import state_of
from trailer.pages.navigation import links_for
from trailer.pages.page import PageView
from workspaces.models import Workspace
from workspaces.stacks.models import Stack

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from hosts.status import Badge
    from trailer.accounts.models import User

_LONGEST_QUERY = 100
_MOST_WORDS = 6
_MOST_OF_A_KIND = 6
_MOST_ACTIONS = 8
# What a first word may ask for: its title, its icon and, for a page, the tab that it opens.
_VERBS = {
    "start": ("Start", "play", ""),
    "stop": ("Stop", "square", ""),
    "redeploy": ("Redeploy", "refresh-cw", ""),
    "logs": ("Logs of", "scroll-text", "logs"),
    "terminal": ("Terminal in", "square-terminal", "terminal"),
    "events": ("Events of", "history", "events"),
    "settings": ("Settings of", "settings", "settings"),
}
_NEEDED = {"logs": "workspace.logs", "terminal": "workspace.exec", "settings": "workspace.modify"}
_NEW = (
    ("New workspace", "/workspaces/new/"),
    ("New stack", "/stacks/new/"),
    ("Pull an image", "/images/new/?kind=pull"),
    ("Build an image", "/images/new/?kind=build"),
    ("New network", "/networks/#new-network"),
    ("New volume", "/volumes/#new-volume"),
)


@dataclass(frozen=True)
class Found:
    """One line of the palette: an address to go to, or an action to carry out on `resource`."""

    title: str
    icon: str
    address: str = ""
    note: str = ""
    badge: Badge | None = None
    action: str = ""
    resource: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    rows: list[Found] = field(default_factory=list)


Row = Workspace | Stack | Image | Host | Network | Volume


class SearchView(PageView):
    template_name = "search.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        text = self.request.GET.get("q", "")[:_LONGEST_QUERY]
        groups = find(self.user, text.lower().split()[:_MOST_WORDS])
        numbers = iter(range(1000))
        shown = [
            (group.title, [(next(numbers), row) for row in group.rows])
            for group in groups
            if group.rows
        ]
        return super().get_context_data(groups=shown, typed=text, **kwargs)


def find(user: User, words: list[str]) -> list[Group]:
    """At most a screenful, in a fixed number of queries, of what this user may see."""
    verb, rest = _verb(words)
    if verb and rest is not None:
        return [Group("Actions", _actions(user, verb, rest))]
    workspaces = list(_matching(Workspace, user, words)[:_MOST_OF_A_KIND])
    groups = [
        Group("Workspaces", [_object(row, "boxes") for row in workspaces]),
        Group("Actions", _actions_on(user, workspaces[:2]) if words else []),
        Group("Pages", _pages(user, words)),
    ]
    if not words:
        return groups
    return [
        *groups,
        _group("Stacks", Stack, user, words, "git-branch"),
        _group("Images", Image, user, words, "layers"),
        _group("Hosts", Host, user, words, "server"),
        _group("Networks", Network, user, words, "network"),
        _group("Volumes", Volume, user, words, "hard-drive"),
    ]


def _verb(words: list[str]) -> tuple[str, list[str] | None]:
    """The verb that the first word begins, if it can be no other; then what follows it."""
    if not words or len(words[0]) < 3:
        return "", None
    fitting = [verb for verb in _VERBS if verb.startswith(words[0])]
    # One word alone may as well be the beginning of a name.
    exact = len(words) > 1 or words[0] in _VERBS
    return (fitting[0], words[1:]) if len(fitting) == 1 and exact else ("", None)


def _actions(user: User, verb: str, words: list[str]) -> list[Found]:
    rows = _matching(Workspace, user, words)[: _MOST_ACTIONS * 3]
    found = [action for row in rows if (action := _action(user, verb, row))]
    return found[:_MOST_ACTIONS]


def _actions_on(user: User, workspaces: list[Workspace]) -> list[Found]:
    verbs = ("logs", "terminal", "start", "stop")
    return [found for row in workspaces for verb in verbs if (found := _action(user, verb, row))]


def _action(user: User, verb: str, workspace: Workspace) -> Found | None:
    """None when the status or the user's role does not allow it."""
    title, icon, tab = _VERBS[verb]
    resource = f"workspace:{workspace.pk}"
    if tab:
        needed = _NEEDED.get(verb)
        if needed and not policy.allows(user, needed, workspace):
            return None
        address = f"/workspaces/{workspace.pk}/?tab={tab}"
        return Found(f"{title} {workspace.name}", icon, address=address, note=workspace.host.name)
    if verb not in state_of(workspace).badge.actions:
        return None
    if not policy.allowed_of(user, workspace, (verb,)):
        return None
    return Found(
        f"{title} {workspace.name}",
        icon,
        note=workspace.host.name,
        action=verb,
        resource=resource,
    )


def _group(title: str, model: Any, user: User, words: list[str], icon: str) -> Group:
    rows = _matching(model, user, words)[:_MOST_OF_A_KIND]
    return Group(title, [_object(row, icon) for row in rows])


def _object(row: Row, icon: str) -> Found:
    note = "" if isinstance(row, Host) else row.host.name
    address = reverse(str(row._meta.model_name), args=[row.pk])
    return Found(row.name, icon, address=address, note=note, badge=state_of(row).badge)


def _matching(model: Any, user: User, words: list[str]) -> QuerySet[Any]:
    """Every word somewhere in the row; names that begin with the first word come first."""
    rows: QuerySet[Any] = model.objects.visible_to(user)
    if model is not Host:
        rows = model.objects.visible_to(user).with_role(user).select_related("host")
    names = ["name", *_ALSO.get(model._meta.model_name, ())]
    for word in words:
        condition = Q()
        for name in names:
            condition |= Q(**{f"{name}__icontains": word})
        rows = rows.filter(condition)
    if not words:
        return rows.order_by("-updated_at")
    begins = Case(When(name__istartswith=words[0], then=0), default=1)
    return rows.order_by(begins, "name")


_ALSO = {
    "workspace": ("description", "image__name"),
    "stack": ("description", "repository"),
    "image": ("reference",),
    "host": ("description",),
    "network": ("subnet",),
}


def _pages(user: User, words: list[str]) -> list[Found]:
    rows = [Found(link.words, link.icon, address=link.address) for link in links_for(user, "")]
    rows += [Found(title, "plus", address=address) for title, address in _NEW]
    return [row for row in rows if all(word in row.title.lower() for word in words)]
