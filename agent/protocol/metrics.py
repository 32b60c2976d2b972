"""What a heartbeat tells of the use of a host, its GPUs and its workspaces; rates are per second.

A value that could not be read, or has no earlier sample to be compared with, is None.
"""

from __future__ import annotations

import msgspec


class HostSample(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu_percent` is of all CPUs together: never over 100."""

    cpu_percent: float | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_used_bytes: int | None = None
    disk_total_bytes: int | None = None
    disk_read_rate: float | None = None
    disk_write_rate: float | None = None
    network_rx_rate: float | None = None
    network_tx_rate: float | None = None
    load: float | None = None
    processes: int | None = None


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    utilization_percent: float | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None


class WorkspaceSample(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu_percent` is of one CPU: a workspace that keeps two busy has 200."""

    workspace_id: str
    cpu_percent: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    disk_read_rate: float | None = None
    disk_write_rate: float | None = None
    network_rx_rate: float | None = None
    network_tx_rate: float | None = None
    processes: int | None = None
    # TCP connections from outside that are open to a port which the container listens on.
    connections: int | None = None


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A family that is switched off, or that nothing is known of, is None."""

    host: HostSample | None = None
    gpus: tuple[GpuSample, ...] | None = None
    workspaces: tuple[WorkspaceSample, ...] | None = None
