"""Reads of workspaces: what pages, API and services need, in a fixed number of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Case, F, Q, When

from agent.protocol.spec import PortSpec
from trailer.errors import NotFound
from workspaces.fields import WORKSPACE_PARTS
from workspaces.models import Port, Revision, Url, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.models import QuerySet

    from agent.protocol.spec import UrlSpec
    from trailer.policy import Actor

_RUN_ALONE: Final = ("start_requested", "stop_requested")


def workspaces_visible_to(actor: Actor) -> QuerySet[Workspace]:
    """With parts, host, image and owner loaded, and `effective_status` to filter by."""
    return with_effective_status(with_parts(Workspace.objects.visible_to(actor).with_role(actor)))


def with_parts(workspaces: QuerySet[Workspace]) -> QuerySet[Workspace]:
    return workspaces.select_related("host", "image", "owner", "timer").prefetch_related(
        *WORKSPACE_PARTS
    )


def with_effective_status(workspaces: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """The same rule as workspaces.status.workspace_status, for the database."""
    unseen = Q(observed_revision__lt=F("revision")) & ~Q(pending_status="")
    return workspaces.annotate(
        effective_status=Case(When(unseen, then=F("pending_status")), default=F("observed_status"))
    )


def workspace_get(workspace_id: UUID) -> Workspace:
    found = with_parts(Workspace.objects.filter(pk=workspace_id)).first()
    if found is None:
        raise NotFound("This workspace is gone: somebody deleted it meanwhile.")
    return found


def workspace_revisions(workspace: Workspace) -> QuerySet[Revision]:
    """Those that hold something new: starting and stopping leaves all other fields alone."""
    rows = Revision.objects.filter(workspace=workspace).exclude(kind__in=_RUN_ALONE)
    return rows.select_related("actor")


def names_near(name: str, *, host_id: UUID, other_than: UUID | None) -> list[str]:
    """Names on this host that equal this one, or differ from it only by `-next`."""
    near = [name, f"{name}-next", name.removesuffix("-next")]
    others = Workspace.objects.filter(host_id=host_id, name__in=near)
    if other_than is not None:
        others = others.exclude(pk=other_than)
    return list(others.values_list("name", flat=True))


def host_ports_held(
    ports: Iterable[PortSpec], *, host_id: UUID, other_than: UUID | None
) -> list[tuple[PortSpec, str]]:
    numbers = {port.host_port for port in ports if port.host_port is not None}
    if not numbers:
        return []
    held = Port.objects.filter(workspace__host_id=host_id, host_port__in=numbers)
    if other_than is not None:
        held = held.exclude(workspace_id=other_than)
    return [
        (
            PortSpec(
                container_port=port.container_port,
                protocol=port.protocol,
                host_port=port.host_port,
                host_ip=port.host_ip,
            ),
            port.workspace.name,
        )
        for port in held.select_related("workspace")
    ]


def addresses_taken(urls: Iterable[UrlSpec], *, other_than: UUID | None) -> set[tuple[str, str]]:
    """(subdomain, domain) pairs among these that another workspace already has."""
    wanted = {(url.subdomain, url.domain) for url in urls}
    if not wanted:
        return set()
    held = Url.objects.filter(subdomain__in={subdomain for subdomain, _ in wanted})
    if other_than is not None:
        held = held.exclude(workspace_id=other_than)
    return wanted & set(held.values_list("subdomain", "domain"))
