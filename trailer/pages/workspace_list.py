"""The list of workspaces: searched, filtered and ordered by the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q

from hosts.models import Host
from images.models import Image
from trailer.pages.page import PageView, list_page, query_without_part
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.selectors import with_effective_status

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import QueryDict

    from trailer.accounts.models import User

# The annotation of with_effective_status: what the badge shows.
_STATUS: str = "effective_status"
_COLUMNS = ("name", "host__name", "image__name", "updated_at", _STATUS)
ORDERINGS = (*_COLUMNS, *(f"-{column}" for column in _COLUMNS))


class WorkspaceListView(PageView):
    template_name = "workspaces/list.html"
    parts: ClassVar = {"rows": "workspaces/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Workspace.objects.visible_to(self.user)
        given = self.request.GET
        ordering = given.get("ordering", "")
        rows = with_effective_status(
            with_parts(filtered(mine.with_role(self.user), given), self.user)
        )
        page = list_page(
            rows.order_by(ordering if ordering in ORDERINGS else "name", "pk"), self.request
        )
        return super().get_context_data(
            page=page,
            workspaces=page.object_list,
            any_at_all=bool(page.object_list) or mine.exists(),
            filtered=any(given.get(name) for name in ("search", "status", "host")),
            statuses=WorkspaceStatus.choices,
            hosts=Host.objects.visible_to(self.user).only("pk", "name"),
            search=given.get("search", ""),
            status=given.get("status", ""),
            host=given.get("host", ""),
            ordering=ordering,
            query=query_without_part(given, "page"),
            query_without_ordering=query_without_part(given, "page", "ordering"),
            **kwargs,
        )


def filtered(rows: QuerySet[Workspace], given: QueryDict) -> QuerySet[Workspace]:
    """By `search`, `status` and `host`; a filter that names nothing we know finds nothing."""
    if search := given.get("search", "").strip():
        rows = rows.filter(
            Q(name__icontains=search)
            | Q(description__icontains=search)
            | Q(image__name__icontains=search)
            | Q(image__reference__icontains=search)
            | Q(host__name__icontains=search)
        )
    if status := given.get("status"):
        rows = in_status(rows, status)
    if host := given.get("host"):
        rows = rows.filter(host__pk=host) if _is_uuid(host) else rows.none()
    return rows


def in_status(rows: QuerySet[Workspace], status: str) -> QuerySet[Workspace]:
    """Those whose badge says so."""
    return with_effective_status(rows).filter(Q((_STATUS, status)))


def with_parts(rows: QuerySet[Workspace], user: User) -> QuerySet[Workspace]:
    """Everything a row shows, in a fixed number of queries. Who sees a workspace knows its image
    by name; `sees_image` says whether there is a page behind the name."""
    images = Image.objects.visible_to(user).filter(pk=OuterRef("image_id"))
    seen = rows.annotate(sees_image=Exists(images))
    return seen.select_related("host", "image").prefetch_related("ports", "urls")


def count_by_status(rows: QuerySet[Workspace]) -> dict[str, int]:
    counted = (
        with_effective_status(rows).order_by().values_list(_STATUS).annotate(count=Count("pk"))
    )
    return {str(status): int(count) for status, count in counted}


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
