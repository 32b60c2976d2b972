"""The audit over REST, for administrators: a filtered list, one entry, and the whole as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Q
from django.http import StreamingHttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action

from trailer.api.permissions import AdminOnly, SignedInWithScope
from trailer.api.views import JsonWhateverIsAccepted, ResourceViewSet
from trailer.audit.export import csv_pieces
from trailer.audit.models import AuditEntry, Outcome, Via
from trailer.audit.selectors import of_actor
from trailer.threads import streamable

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request


class AuditFilter(filters.FilterSet):  # type: ignore[misc]
    actor = filters.CharFilter(method="by_actor", label="A user's id or name.")
    action = filters.CharFilter(label="noun.verb, or the noun alone.", method="by_action")
    kind = filters.CharFilter()
    object = filters.CharFilter("object_id")
    via = filters.ChoiceFilter(choices=Via.choices)
    outcome = filters.ChoiceFilter(choices=Outcome.choices)
    since = filters.IsoDateTimeFilter("at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter("at", lookup_expr="lt")

    def by_actor(self, rows: QuerySet[AuditEntry], name: str, value: str) -> QuerySet[AuditEntry]:
        return rows.filter(of_actor(value))

    def by_action(self, rows: QuerySet[AuditEntry], name: str, value: str) -> QuerySet[AuditEntry]:
        return rows.filter(Q(action=value) | Q(action__startswith=f"{value}."))


class AuditChangeOutput(serializers.Serializer[Any]):
    """Secret values are masked, long ones cut."""

    field = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        # `from` is no Python name, so these two can't be class attributes.
        return {
            **super().get_fields(),
            "from": serializers.JSONField(allow_null=True),
            "to": serializers.JSONField(allow_null=True),
        }


class AuditOutput(serializers.ModelSerializer[AuditEntry]):
    actor = serializers.CharField(source="actor_name")
    object = serializers.CharField(source="object_id")
    token = serializers.CharField(source="token_name")
    changes = AuditChangeOutput(many=True)

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "at", "actor", "actor_id", "via", "token", "address", "request_id"),
            *("action", "kind", "object", "object_name", "changes", "outcome"),
        )
        read_only_fields = fields


class AuditViewSet(ResourceViewSet[AuditEntry]):
    """Who did what, when and from where; newest first. Nobody can change it."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditOutput
    permission_classes = (SignedInWithScope, AdminOnly)
    filterset_class = AuditFilter
    search_fields: ClassVar = [
        *("actor_name", "object_name", "action", "address", "request_id", "token_name")
    ]
    ordering_fields: ClassVar = ["at"]

    @extend_schema(responses={(200, "text/csv"): OpenApiResponse(OpenApiTypes.STR)})
    @action(detail=False, pagination_class=None, content_negotiation_class=JsonWhateverIsAccepted)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Everything that the same filters find, as CSV; streamed, however long it is."""
        pieces = csv_pieces(self.filter_queryset(self.get_queryset()))
        return StreamingHttpResponse(
            streamable(request._request, pieces),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="trailer-audit.csv"'},
        )
