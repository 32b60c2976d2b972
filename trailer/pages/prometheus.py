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
from hosts.models import GpuSample, Host
from hosts.status import host_status, is_heard
from images.models import Build
from trailer.api.views import JsonWhateverIsAccepted
from trailer.counters import counters
from workspaces.models import Workspace, WorkspaceSample
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

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
_WORKSPACE_RATES = {
    "disk_read_rate": ("disk_read_bytes_per_second", "Bytes read from disks."),
    "disk_write_rate": ("disk_write_bytes_per_second", "Bytes written to disks."),
    "network_rx_rate": ("network_receive_bytes_per_second", "Bytes received."),
    "network_tx_rate": ("network_transmit_bytes_per_second", "Bytes sent."),
    "connections": ("connections", "Open connections to ports that it listens on."),
}
_GPU = ("gpu", "name", "host")
_GPU_GAUGES = {
    "utilization_percent": ("utilization_percent", "How busy the card is."),
    "memory_bytes": ("memory_used_bytes", "Memory of the card in use."),
    "memory_total_bytes": ("memory_bytes", "Memory of the card."),
    "temperature_celsius": ("temperature_celsius", "Temperature of the card."),
    "power_watts": ("power_watts", "Power that the card draws."),
}


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
        text = generate_latest(registry) + generate_latest(counters())
        return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


class FleetCollector(Collector):
    """A fixed number of queries; the library escapes whatever names hold."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        hosts = list(Host.objects.select_related("usage").order_by("name"))
        yield from self._hosts(hosts)
        yield from self._usage([host for host in hosts if is_heard(host, self._now)])
        yield from self._workspaces(hosts)
        latest = {h.pk: h for h in hosts if is_heard(h, self._now) and hasattr(h, "usage")}
        yield from self._rates(latest)
        yield from self._gpus(latest)
        # nosemgrep: unscoped-read (counted, for administrators)
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
        # nosemgrep: unscoped-read (counted, for administrators)
        rows = Workspace.objects.order_by().only(
            *("id", "name", "host_id", "revision", "pending_status"),
            *("observed_revision", "observed_status"),
        )
        names = {host.pk: host.name for host in hosts}
        latest = {
            workspace_id: values
            for host in hosts
            if is_heard(host, self._now) and hasattr(host, "usage")
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

    def _rates(self, hosts: dict[UUID, Host]) -> Iterator[Metric]:
        rows = WorkspaceSample.objects.select_related("workspace").filter(
            workspace__host__in=list(hosts), resolution=0, at__in=_moments(hosts)
        )
        found = [
            ((str(row.workspace_id), row.workspace.name, hosts[row.workspace.host_id].name), row)
            for row in rows
            if row.at == _moment(hosts[row.workspace.host_id])
        ]
        yield from _gauges("workspace", _WORKSPACE, _WORKSPACE_RATES, found)

    def _gpus(self, hosts: dict[UUID, Host]) -> Iterator[Metric]:
        rows = GpuSample.objects.filter(host__in=list(hosts), resolution=0, at__in=_moments(hosts))
        names = {(h.pk, card["id"]): card["name"] for h in hosts.values() for card in h.gpus}
        found = [
            ((row.gpu, names.get((row.host_id, row.gpu), ""), hosts[row.host_id].name), row)
            for row in rows
            if row.at == _moment(hosts[row.host_id])
        ]
        yield from _gauges("gpu", _GPU, _GPU_GAUGES, found)


def _moment(host: Host) -> int:
    """Samples of one heartbeat have one time."""
    return int(host.usage.at.timestamp())


def _moments(hosts: dict[UUID, Host]) -> set[int]:
    return {_moment(host) for host in hosts.values()}


def _gauges(
    kind: str,
    labels: tuple[str, ...],
    columns: Mapping[str, tuple[str, str]],
    rows: Sequence[tuple[tuple[str, ...], object]],
) -> Iterator[Metric]:
    for column, (name, words) in columns.items():
        known = [(texts, getattr(row, column)) for texts, row in rows]
        values = [(texts, value) for texts, value in known if value is not None]
        yield _gauge(f"{kind}_{name}", words, labels, values)


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
