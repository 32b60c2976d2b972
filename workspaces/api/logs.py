"""The log of a workspace over REST: one answer; whoever wants to follow it opens the socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action

from agent.protocol.sessions import ALL_LINES, LOGS, SessionOpen
from trailer.api.views import JsonWhateverIsAccepted
from workspaces.models import Workspace
from workspaces.sessions.access import session_place
from workspaces.sessions.logs import MOST_LINES, workspace_log
from workspaces.sessions.request import flag, lines_wanted

if TYPE_CHECKING:
    from rest_framework.request import Request

    from trailer.accounts.models import User

_LINES = 1000


class WorkspaceLogsMixin(viewsets.GenericViewSet[Workspace]):
    @extend_schema(
        parameters=[
            OpenApiParameter("tail", str, description='Newest lines: a number (1000), or "all".'),
            OpenApiParameter("previous", bool, description="Of the container before this one."),
            OpenApiParameter("timestamps", bool, description="Begin each line with its time."),
        ],
        responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.STR)},
        filters=False,
    )
    @action(
        detail=True,
        filter_backends=[],
        pagination_class=None,
        content_negotiation_class=JsonWhateverIsAccepted,
    )
    def logs(self, request: Request, pk: str) -> HttpResponse:
        """What the container said: the newest lines, at most 8 MiB of them."""
        workspace = self.get_object()
        query = dict(request.query_params.lists())
        lines = lines_wanted(query, default=_LINES)
        wanted = SessionOpen(
            kind=LOGS,
            workspace_id=str(workspace.pk),
            user=str(request.user.pk),
            tail=MOST_LINES if lines == ALL_LINES else min(lines, MOST_LINES),
            follow=False,
            timestamps=flag(query, "timestamps"),
            previous=flag(query, "previous"),
        )
        place = session_place(cast("User", request.user), workspace.pk, LOGS)
        text = async_to_sync(workspace_log)(place, wanted)
        return HttpResponse(text, content_type="text/plain; charset=utf-8")
