"""The series of one workspace over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from hosts.api.metrics import WINDOW, SeriesOutput, asked_window, series_answer
from hosts.metrics.series import series
from workspaces.metrics import WORKSPACES

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.models import Workspace


class WorkspacePoint(serializers.Serializer[Any]):
    """Rates are bytes per second; `cpu_percent` is of one CPU, so that two busy ones are 200."""

    at = serializers.DateTimeField()
    cpu_percent = serializers.FloatField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    memory_limit_bytes = serializers.IntegerField(allow_null=True)
    disk_read_rate = serializers.IntegerField(allow_null=True)
    disk_write_rate = serializers.IntegerField(allow_null=True)
    network_rx_rate = serializers.IntegerField(allow_null=True)
    network_tx_rate = serializers.IntegerField(allow_null=True)
    processes = serializers.IntegerField(allow_null=True)
    connections = serializers.FloatField(allow_null=True)


class WorkspaceSeries(SeriesOutput):
    results = WorkspacePoint(many=True)


class WorkspaceMetricsMixin:
    """`GET …/metrics/` of a workspace, for everybody who may see it."""

    @extend_schema(parameters=WINDOW, responses=WorkspaceSeries, filters=False)
    @action(detail=True, filter_backends=[], pagination_class=None)
    def metrics(self, request: Request, pk: str) -> Response:
        """How busy the workspace was, oldest first."""
        workspace: Workspace = self.get_object()  # type: ignore[attr-defined]
        window, step = asked_window(request)
        points = series(WORKSPACES, window, step, {"workspace": workspace})
        answer = series_answer(points, step, workspace.host.heartbeat_interval)
        return Response(WorkspaceSeries(answer).data)
