"""May this visitor open this URL, and where does it lead: asked for every request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from agent.protocol.sessions import CAPABILITY
from hosts.status import host_status, is_out_of_reach
from trailer import policy
from trailer.accounts.models import Session, User
from workspaces.choices import UrlAuth, WorkspaceStatus
from workspaces.models import Url, Workspace
from workspaces.services.timer import visit_seen
from workspaces.sessions.access import Place
from workspaces.status import workspace_badge, workspace_status
from workspaces.urls import tokens

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.urls.tokens import Pass

_RESTING: Final = frozenset({WorkspaceStatus.STOPPED, WorkspaceStatus.STOPPING})


class Unknown(Exception):
    """No workspace has this address."""


class SignInNeeded(Exception):
    """Nobody who may open it is signed in."""


class Down(Exception):
    """It cannot answer now; the sentence says why."""

    def __init__(self, title: str, sentence: str, *, comes_soon: bool = False) -> None:
        super().__init__(sentence)
        self.title = title
        self.comes_soon = comes_soon


@dataclass(frozen=True, kw_only=True)
class Passage:
    """An allowed way to a port of a workspace. `user` is None for the public."""

    workspace_id: UUID
    workspace_name: str
    status_label: str
    port: int
    place: Place
    is_public: bool
    user: User | None = None
    ticket: Pass | None = None


def passage(host: str, visit: str) -> Passage:
    """Raises Unknown, SignInNeeded or Down. Who may not open it learns nothing of its state; who
    may is noted as using it."""
    url = url_at(host)
    if url is None:
        raise Unknown
    user, ticket = None, None
    if url.auth != UrlAuth.PUBLIC:
        ticket = tokens.read_visit(visit, host=host)
        user = visitor(ticket, url) if ticket is not None else None
        if user is None:
            raise SignInNeeded
    workspace = url.workspace
    _check_up(workspace)
    timer = getattr(workspace, "timer", None)
    if timer is not None:
        visit_seen(timer)
    return Passage(
        workspace_id=workspace.pk,
        workspace_name=workspace.name,
        status_label=workspace_badge(workspace).label,
        port=url.port,
        place=Place(
            workspace_id=workspace.pk,
            host_id=workspace.host.pk,
            host_name=workspace.host.name,
            epoch=workspace.host.epoch,
        ),
        is_public=url.auth == UrlAuth.PUBLIC,
        user=user,
        ticket=ticket,
    )


def url_at(host: str) -> Url | None:
    """By its whole host name; a subdomain is one label."""
    subdomain, _, domain = host.partition(".")
    rows = Url.objects.select_related("workspace__host", "workspace__timer")
    return rows.filter(subdomain=subdomain, domain=domain).first()


def may_open(user: User, url: Url) -> bool:
    """`owner`: the owner alone. `users`: who may see the workspace."""
    if url.auth == UrlAuth.OWNER:
        return policy.allows(user, "workspace.open_as_owner", url.workspace)
    if url.auth == UrlAuth.USERS:
        return policy.allows(user, "workspace.view", url.workspace)
    return url.auth == UrlAuth.PUBLIC


def visitor(ticket: Pass, url: Url) -> User | None:
    """The user of a proof, if account, session and right are still there."""
    if ticket.workspace_id != str(url.workspace_id):
        return None
    session = (
        Session.objects.select_related("user")
        .filter(public_id=ticket.session_id, expire_date__gt=timezone.now())
        .first()
    )
    user = session.user if session is not None else None
    if user is None or str(user.pk) != ticket.user_id or not may_open(user, url):
        return None
    return user


def _check_up(workspace: Workspace) -> None:
    host = workspace.host
    now = timezone.now()
    if is_out_of_reach(host, now):
        raise Down(
            "The host does not answer",
            f"{workspace.name} is on host {host.name}, which is "
            f"{host_status(host, now).label.lower()}. "
            "It can be opened again when the host's agent is connected.",
        )
    if host.capabilities and CAPABILITY not in host.capabilities:
        raise Down(
            "The host's agent is too old",
            f"The agent of host {host.name} cannot carry URLs yet. Update it.",
        )
    if workspace_status(workspace) in _RESTING:
        raise Down(
            "This workspace is stopped",
            f"{workspace.name} does not run. Start it, then load this page again.",
        )
