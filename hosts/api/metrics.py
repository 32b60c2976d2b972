"""Series of samples over REST: the span that is asked for, and the shape of the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from hosts.metrics.families import GPUS, HOSTS
from hosts.metrics.series import Step, Window, series, step_for
from trailer.errors import Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request

    from hosts.models import Host

_LONGEST: Final = timedelta(days=3660)
_DEFAULT: Final = timedelta(hours=1)

WINDOW: Final = [
    OpenApiParameter("since", OpenApiTypes.DATETIME, description="Default: an hour ago."),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Default: now."),
    OpenApiParameter("resolution", int, description="Seconds per point, at least."),
]


class HostPoint(serializers.Serializer[Any]):
    """Rates are bytes per second; `cpu_percent` is of all CPUs together."""

    at = serializers.DateTimeField()
    cpu_percent = serializers.FloatField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    memory_total_bytes = serializers.IntegerField(allow_null=True)
    disk_used_bytes = serializers.IntegerField(allow_null=True)
    disk_total_bytes = serializers.IntegerField(allow_null=True)
    disk_read_rate = serializers.IntegerField(allow_null=True)
    disk_write_rate = serializers.IntegerField(allow_null=True)
    network_rx_rate = serializers.IntegerField(allow_null=True)
    network_tx_rate = serializers.IntegerField(allow_null=True)
    load = serializers.FloatField(allow_null=True)
    processes = serializers.IntegerField(allow_null=True)


class GpuPoint(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    utilization_percent = serializers.FloatField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    memory_total_bytes = serializers.IntegerField(allow_null=True)
    temperature_celsius = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)


class GpuSeries(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    results = GpuPoint(many=True)


class SeriesOutput(serializers.Serializer[Any]):
    """Never paged: the resolution keeps it short."""

    resolution = serializers.IntegerField(help_text="Seconds per point.")
    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class HostSeries(SeriesOutput):
    results = HostPoint(many=True)
    gpus = GpuSeries(many=True)


class HostMetricsMixin:
    """`GET …/metrics/` of a host, for everybody who may see it."""

    @extend_schema(parameters=WINDOW, responses=HostSeries, filters=False)
    @action(detail=True, filter_backends=[], pagination_class=None)
    def metrics(self, request: Request, pk: str) -> Response:
        """How busy the host and its GPUs were, oldest first."""
        host: Host = self.get_object()  # type: ignore[attr-defined]
        window, step = asked_window(request)
        gpus = [
            {
                "id": gpu.get("id", ""),
                "name": gpu.get("name", ""),
                "results": series(GPUS, window, step, {"host": host, "gpu": gpu.get("id", "")}),
            }
            for gpu in host.gpus
        ]
        points = series(HOSTS, window, step, {"host": host})
        answer = series_answer(points, step, host.heartbeat_interval)
        return Response(HostSeries(answer | {"gpus": gpus}).data)


def series_answer(points: list[dict[str, Any]], step: Step, interval: int) -> dict[str, Any]:
    return {
        "resolution": step.seconds if step.base else max(step.seconds, interval),
        "count": len(points),
        "next": None,
        "previous": None,
        "results": points,
    }


def asked_window(request: Request) -> tuple[Window, Step]:
    now = timezone.now()
    asked = request.query_params
    until = _moment("until", asked.get("until", ""))
    since = _moment("since", asked.get("since", "")) or min(until or now, now) - _DEFAULT
    if until is None:
        # A caller whose clock is ahead asks for what is yet to come: there is nothing.
        until = max(now, since)
    if since > until:
        raise Invalid.field("since", "since must lie before until.")
    # Nothing is kept for longer; the end may be open.
    since, until = max(since, now - _LONGEST), min(until, now + timedelta(minutes=1))
    window = Window(
        since=int(since.timestamp()),
        until=max(int(since.timestamp()), int(until.timestamp()) + 1),
        resolution=_seconds(asked.get("resolution", "")),
    )
    return window, step_for(window, int(now.timestamp()))


def _moment(name: str, text: str) -> datetime | None:
    """A plus sign that was not escaped in the address arrives as a space."""
    if not text:
        return None
    for candidate in (text, text.replace(" ", "+")):
        try:
            moment = datetime.fromisoformat(candidate)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    raise Invalid.field(name, f"“{text[:64]}” is not a time; write it like 2026-01-31T23:59:00Z.")


def _seconds(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:10]) <= 31_536_000:
        raise Invalid.field("resolution", "resolution must be a number of seconds, at least 1.")
    return int(text[:10])
