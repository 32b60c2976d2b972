"""The story of a workspace over REST. Joined and put into words when it is asked for.

The schema is made from these annotations at run time, so they are not postponed here.
"""

from typing import Any, cast
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from trailer import policy
from trailer.errors import Invalid
from trailer.policy import Actor
from workspaces.api.serializers import FieldChangeSerializer
from workspaces.models import Workspace
from workspaces.story.fields import label_of
from workspaces.story.join import explaining
from workspaces.story.read import Filter, workspace_story
from workspaces.story.rows import AGENT, ENGINE, OUTCOMES, SCHEDULE, STACK, USER, Entry
from workspaces.story.sentences import summary_of

_BY = (USER, AGENT, ENGINE, SCHEDULE, STACK)


class EventChangeSerializer(FieldChangeSerializer):
    """A change with what its field is called."""

    def get_fields(self) -> dict[str, Any]:
        # `label` is taken by the serializer itself.
        return {**super().get_fields(), "label": serializers.SerializerMethodField()}

    def get_label(self, change: dict[str, Any]) -> str:
        return label_of(str(change.get("field", "")))


class BySerializer(serializers.Serializer[Any]):
    """Who or what did it."""

    type = serializers.ChoiceField(choices=_BY)
    name = serializers.CharField(allow_blank=True)


class ExitSerializer(serializers.Serializer[Any]):
    """How the container's main process ended."""

    code = serializers.IntegerField(allow_null=True)
    signal = serializers.CharField(allow_blank=True)
    oom = serializers.BooleanField()


class EventSerializer(serializers.Serializer[Any]):
    """One act with what became of it, or one thing that happened."""

    id = serializers.UUIDField(source="row.id")
    at = serializers.DateTimeField(source="row.at")
    kind = serializers.CharField()
    summary = serializers.SerializerMethodField()
    by = BySerializer()
    cause = serializers.CharField(source="row.cause")
    changes = EventChangeSerializer(many=True, source="row.changes")
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    duration_ms = serializers.IntegerField(
        allow_null=True, help_text="From when it was asked for until it was done or had failed."
    )
    problem = serializers.CharField(allow_blank=True, help_text="Why it failed.")
    exit = ExitSerializer(allow_null=True, source="row.exit")
    count = serializers.IntegerField(
        source="row.count", help_text="How many equal ones followed each other."
    )
    last_at = serializers.DateTimeField(
        source="row.last_at", allow_null=True, help_text="The last of several."
    )
    health_output = serializers.CharField(
        source="row.health_output",
        allow_blank=True,
        help_text="Of the last health check; empty without the right to the logs.",
    )
    last_lines = serializers.CharField(
        source="row.last_lines",
        allow_blank=True,
        help_text="What it last wrote; empty without the right to the logs.",
    )
    actor = serializers.SerializerMethodField()
    revision = serializers.IntegerField(source="row.revision", allow_null=True)
    cycle = serializers.IntegerField(source="row.cycle", allow_null=True)

    def to_representation(self, entry: Entry) -> dict[str, Any]:
        told = super().to_representation(entry)
        if not self.context["inspects"]:
            told["changes"] = []
        if not self.context["reads_logs"]:
            told |= {"health_output": "", "last_lines": ""}
        return told

    def get_summary(self, entry: Entry) -> str:
        return summary_of(entry, inspects=self.context["inspects"])

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_actor(self, entry: Entry) -> str | None:
        return entry.row.user or entry.row.name or None


def event_context(actor: Actor, workspace: Workspace) -> dict[str, bool]:
    """What of its story the actor may read."""
    return {
        "inspects": policy.allows(actor, "workspace.inspect", workspace),
        "reads_logs": policy.allows(actor, "workspace.logs", workspace),
    }


def filter_of(query: Any) -> Filter:
    wanted = Filter(
        kind=query.get("kind", ""), outcome=query.get("outcome", ""), by=query.get("by", "")
    )
    problems = {}
    if wanted.outcome and wanted.outcome not in OUTCOMES:
        problems["outcome"] = [f"outcome must be one of: {', '.join(OUTCOMES)}."]
    if wanted.by and wanted.by not in _BY:
        problems["by"] = [f"by must be one of: {', '.join(_BY)}."]
    if problems:
        raise Invalid("The events can't be filtered like this.", fields=problems)
    return wanted


class WorkspaceEventsMixin(viewsets.GenericViewSet[Workspace]):
    @extend_schema(
        filters=False,
        parameters=[
            OpenApiParameter("kind", str, description="Such as changed, crashed or heal."),
            OpenApiParameter("outcome", str, enum=OUTCOMES),
            OpenApiParameter("by", str, enum=_BY, description="Who or what did it."),
            OpenApiParameter(
                "why", bool, description="Only the newest that says why the status is as it is."
            ),
        ],
        responses=EventSerializer(many=True),
    )
    @action(detail=True)
    def events(self, request: Request, pk: UUID) -> Response:
        """What happened, by whom and why, newest first: one entry per act, with its outcome."""
        workspace = self.get_object()
        entries = workspace_story(workspace, filter_of(request.query_params))
        if request.query_params.get("why", "").lower() in ("true", "1"):
            newest = explaining(entries)
            entries = [newest] if newest else []
        page = self.paginate_queryset(cast("Any", entries))
        context = event_context(request.user, workspace)
        return self.get_paginated_response(EventSerializer(page, many=True, context=context).data)
