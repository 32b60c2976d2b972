"""The audit, for administrators: who did what, when and from where."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse
from django.utils.dateparse import parse_date

from trailer.audit.models import AuditEntry
from trailer.audit.selectors import of_actor, sealed_now
from trailer.pages.page import list_page, query_without_part
from trailer.pages.users import AdminPageView

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import QueryDict

_NAMES = ("search", "kind", "actor", "object", "since", "until")
_PAGES = {"workspace": "workspace", "image": "image", "host": "host"}


class AuditView(AdminPageView):
    rule = "auditentry.view"
    template_name = "audit/audit.html"
    parts: ClassVar = {"rows": "audit/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        given = self.request.GET
        page = list_page(filtered(AuditEntry.objects.all(), given), self.request)
        entries = [(entry, _address(entry)) for entry in page.object_list]
        kinds = AuditEntry.objects.order_by("kind").values_list("kind", flat=True).distinct()
        return super().get_context_data(
            page=page,
            entries=entries,
            kinds=list(kinds) if not self.is_part else [],
            filtered=any(given.get(name) for name in _NAMES),
            given={name: given.get(name, "") for name in _NAMES},
            export=_export(given),
            query=query_without_part(given, "page"),
            sealed=sealed_now(),
            **kwargs,
        )


def filtered(rows: QuerySet[AuditEntry], given: QueryDict) -> QuerySet[AuditEntry]:
    """A filter that means nothing finds nothing."""
    if search := given.get("search", "").strip():
        found = Q()
        for name in ("actor_name", "object_name", "action", "address", "request_id", "token_name"):
            found |= Q(**{f"{name}__icontains": search})
        rows = rows.filter(found)
    if kind := given.get("kind"):
        rows = rows.filter(kind=kind)
    if actor := given.get("actor", "").strip():
        rows = rows.filter(of_actor(actor))
    if object_id := given.get("object"):
        rows = rows.filter(object_id=object_id)
    if since := _day(given.get("since", "")):
        rows = rows.filter(at__gte=since)
    if until := _day(given.get("until", "")):
        rows = rows.filter(at__lt=until + timedelta(days=1))
    return rows


def _export(given: QueryDict) -> str:
    """The address of the CSV with what the page shows; days become the moments the API takes."""
    query = {name: str(given[name]) for name in _NAMES if given.get(name)}
    since, until = _day(query.pop("since", "")), _day(query.pop("until", ""))
    if since:
        query["since"] = since.isoformat()
    if until:
        query["until"] = (until + timedelta(days=1)).isoformat()
    return "/api/v1/audit/export/" + (f"?{urlencode(query)}" if query else "")


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    return datetime.combine(day, time(), tzinfo=UTC) if day else None


def _address(entry: AuditEntry) -> str:
    """Where the object can be looked at, if it has a page of its own and may still be there."""
    page = _PAGES.get(entry.kind)
    if page is None or not entry.object_id or entry.action.endswith(".delete"):
        return ""
    return reverse(page, args=[entry.object_id])
