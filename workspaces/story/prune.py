"""Old events go: by their age, and where a workspace has more than are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from workspaces.models import Event
from workspaces.story.rows import CRASHED, RESTARTED

if TYPE_CHECKING:
    from datetime import datetime

# Kinds by which the next start of a stopped workspace knows what was changed since its last one.
_UP_TO_DATE: Final = ("create", "replace", "start")
_BATCH: Final = 5000


def events_prune(now: datetime) -> int:
    """How many went. What a stopped workspace was changed by since it last ran stays."""
    oldest = now - timedelta(days=settings.TRAILER_EVENTS_DAYS)
    gone = _delete(_spare(Event.objects.filter(received_at__lt=oldest)))
    kept = settings.TRAILER_EVENTS_KEPT
    crowded = (
        Event.objects.order_by()
        .values("workspace")
        .annotate(events=Count("pk"))
        .filter(events__gt=kept)
        .values_list("workspace", flat=True)
    )
    for workspace_id in list(crowded):
        rows = Event.objects.filter(workspace=workspace_id)
        limit = rows.values_list("received_at", flat=True)[kept - 1]
        gone += _delete(_spare(rows.filter(received_at__lt=limit)))
    return gone


def _spare(rows: QuerySet[Event]) -> QuerySet[Event]:
    ran = (
        Event.objects.filter(workspace=OuterRef("workspace"), kind__in=_UP_TO_DATE)
        .order_by()
        .values("workspace")
        .annotate(newest=Max("revision"))
        .values("newest")
    )
    old = Q(revision=None) | Q(revision__lt=F("ran")) | Q(kind__in=(CRASHED, RESTARTED))
    return rows.annotate(ran=Subquery(ran)).filter(old)


def _delete(rows: QuerySet[Event]) -> int:
    """In batches, so that no other writer waits for long."""
    gone = 0
    while batch := list(rows.order_by().values_list("pk", flat=True)[:_BATCH]):
        gone += Event.objects.filter(pk__in=batch).delete()[0]
    return gone
