"""`/metrics` in Prometheus' text format, for staff: hosts, workspaces and builds now."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db.models import Count
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector
from rest_framework.permissions import BasePermission
from rest_framework.views import APIView

from hosts.choices import HostStatus
from hosts.models import Host
from hosts.status import host_status, is_fresh
from images.models import Build
from trailer.api.views import JsonWhateverIsAccepted
from workspaces.models import Workspace
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from prometheus_client.metrics_core import Metric
    from rest_framework.request import Request

_HOST = ("host", "name")
_WORKSPACE = ("workspace", "name", "host")
# Column of the latest sample -> name and meaning of its gauge.
_HOST_GAUGES = {
    "cpu_percent": ("cpu_percent", "CPU use, of all CPUs together."),
    "memory_bytes": ("memory_used_bytes", "Memory in use."),
    "memory_total_bytes": ("memory_bytes", "Memory there is."),
    "disk_used_bytes": ("disk_used_bytes", "Used space of the engine's disk."),
    "disk_total_bytes": ("disk_bytes", "Size of the engine's disk."),
    "load": ("load1", "Load average of one minute."),
}
_WORKSPACE_GAUGES = (
    ("cpu_percent", "CPU use; 100 is one CPU."),
    ("memory_used_bytes", "Memory in use, without file cache."),
    ("memory_limit_bytes", "Memory it may use."),
)


class StaffOnly(BasePermission):
    message = "Only staff may read the metrics of the whole installation."

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        return bool(user.is_authenticated and user.is_active and user.is_staff)


class PrometheusView(APIView):
    permission_classes = (StaffOnly,)
    content_negotiation_class = JsonWhateverIsAccepted

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(FleetCollector(timezone.now()))
        ProcessCollector(registry=registry)
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class FleetCollector(Collector):
    """A fixed number of queries; the library escapes whatever names hold."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        hosts = list(Host.objects.select_related("usage").order_by("name"))
        yield from self._hosts(hosts)
        yield from self._usage([host for host in hosts if is_fresh(host, self._now)])
        yield from self._workspaces(hosts)
        builds = Build.objects.order_by().values_list("status").annotate(Count("pk"))
        yield _gauge("builds", "Builds by status.", ("status",), [((s,), n) for s, n in builds])

    def _hosts(self, hosts: list[Host]) -> Iterator[Metric]:
        up = [(_of(h), int(host_status(h, self._now) == HostStatus.ONLINE)) for h in hosts]
        yield _gauge("host_up", "1 while the host is online.", _HOST, up)
        ages = [
            (_of(h), (self._now - h.last_heartbeat).total_seconds())
            for h in hosts
            if h.last_heartbeat is not None
        ]
        words = "Seconds since the last heartbeat."
        yield _gauge("host_last_heartbeat_age_seconds", words, _HOST, ages)
        skews = [(_of(h), h.clock_skew_seconds) for h in hosts if h.clock_skew_seconds is not None]
        words = "How far the agent's clock is ahead."
        yield _gauge("host_clock_skew_seconds", words, _HOST, skews)

    def _usage(self, hosts: list[Host]) -> Iterator[Metric]:
        for column, (name, words) in _HOST_GAUGES.items():
            values = [
                (_of(host), getattr(host.usage, column))
                for host in hosts
                if hasattr(host, "usage") and getattr(host.usage, column) is not None
            ]
            yield _gauge(f"host_{name}", words, _HOST, values)

    def _workspaces(self, hosts: list[Host]) -> Iterator[Metric]:
        rows = Workspace.objects.order_by().only(
            *("id", "name", "host_id", "revision", "pending_status"),
            *("observed_revision", "observed_status"),
        )
        names = {host.pk: host.name for host in hosts}
        latest = {
            workspace_id: values
            for host in hosts
            if is_fresh(host, self._now) and hasattr(host, "usage")
            for workspace_id, values in host.usage.workspaces.items()
        }
        found = list(rows)
        counts = Counter(str(workspace_status(row)) for row in found)
        by_status = [((status,), number) for status, number in sorted(counts.items())]
        yield _gauge("workspaces", "Workspaces by status.", ("status",), by_status)
        for place, (name, words) in enumerate(_WORKSPACE_GAUGES):
            values = [
                ((str(row.pk), row.name, names[row.host_id]), latest[str(row.pk)][place])
                for row in found
                if latest.get(str(row.pk), (None,) * 3)[place] is not None
            ]
            yield _gauge(f"workspace_{name}", words, _WORKSPACE, values)


def _of(host: Host) -> tuple[str, str]:
    return str(host.pk), host.name


def _gauge(
    name: str,
    words: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    family = GaugeMetricFamily(f"trailer_{name}", words, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family
