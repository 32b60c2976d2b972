"""Stores the samples of one heartbeat: a fixed number of statements, whatever their number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from hosts.models import GpuSample, HostSample, HostUsage
from trailer import events
from trailer.validation import LIST_LIMIT, stored_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent.protocol.metrics import GpuSample as GpuReport
    from agent.protocol.metrics import HostSample as HostReport
    from agent.protocol.metrics import WorkspaceSample as WorkspaceReport
    from hosts.models import Host

_LARGEST: Final = 2**62
_COUNT: Final = 2**31 - 1
_USAGE: Final = (
    *("cpu_percent", "memory_bytes", "memory_total_bytes"),
    *("disk_used_bytes", "disk_total_bytes", "load"),
)


def host_sample_record(host: Host, sample: HostReport, now: datetime) -> None:
    columns = host_columns(sample)
    HostSample.objects.bulk_create(
        [HostSample(host=host, resolution=0, at=int(now.timestamp()), **columns)],
        ignore_conflicts=True,
    )


def gpu_samples_record(host: Host, samples: tuple[GpuReport, ...], now: datetime) -> None:
    rows = [
        GpuSample(
            host=host,
            gpu=stored_text(sample.id, 64),
            resolution=0,
            at=int(now.timestamp()),
            utilization_percent=measured(sample.utilization_percent),
            memory_bytes=counted(sample.memory_bytes),
            memory_total_bytes=counted(sample.memory_total_bytes),
            temperature_celsius=measured(sample.temperature_celsius),
            power_watts=measured(sample.power_watts),
        )
        for sample in samples[:LIST_LIMIT]
    ]
    GpuSample.objects.bulk_create(rows, ignore_conflicts=True, batch_size=None)


def usage_record(
    host: Host,
    sample: HostReport | None,
    workspaces: Mapping[str, WorkspaceReport],
    now: datetime,
) -> None:
    """What bars show; browsers are told once, not once per workspace."""
    columns = host_columns(sample) if sample is not None else {}
    latest: dict[str, Any] = {name: columns.get(name) for name in _USAGE}
    latest["workspaces"] = {
        workspace_id: [
            measured(report.cpu_percent),
            counted(report.memory_bytes),
            counted(report.memory_limit_bytes),
        ]
        for workspace_id, report in workspaces.items()
    }
    HostUsage.objects.bulk_create(
        [HostUsage(host=host, at=now, **latest)],
        update_conflicts=True,
        unique_fields=["host"],
        update_fields=["at", *latest],
    )
    events.publish("usage", host.pk)


def host_columns(sample: HostReport) -> dict[str, Any]:
    return {
        "cpu_percent": measured(sample.cpu_percent),
        "memory_bytes": counted(sample.memory_bytes),
        "memory_total_bytes": counted(sample.memory_total_bytes),
        "disk_used_bytes": counted(sample.disk_used_bytes),
        "disk_total_bytes": counted(sample.disk_total_bytes),
        "disk_read_rate": counted(sample.disk_read_rate),
        "disk_write_rate": counted(sample.disk_write_rate),
        "network_rx_rate": counted(sample.network_rx_rate),
        "network_tx_rate": counted(sample.network_tx_rate),
        "load": measured(sample.load),
        "processes": counted(sample.processes, _COUNT),
    }


def measured(value: float | None) -> float | None:
    """What an agent says, made storable: no infinity, nothing below nothing."""
    if value is None or not math.isfinite(value):
        return None
    return round(min(max(value, 0.0), 1e12), 2)


def counted(value: float | None, limit: int = _LARGEST) -> int | None:
    if value is None or not math.isfinite(value):
        return None
    return min(max(round(value), 0), limit)
