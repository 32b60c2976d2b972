"""Counters of one moment, and what two of them say: rates. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.protocol.metrics import WorkspaceSample


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A running container whose use is read; `run` changes whenever it was started anew."""

    workspace_id: str
    container_id: str
    pid: int
    run: str
    memory_limit_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Counters:
    """`at` is monotonic. The totals only grow while the container runs."""

    at: float
    run: str = ""
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    network_rx_bytes: int | None = None
    network_tx_bytes: int | None = None
    processes: int | None = None
    connections: int | None = None


def rate(before: float | None, now: float | None, seconds: float) -> float | None:
    """A total that shrank was begun anew: there is no rate for this once."""
    if before is None or now is None or now < before or seconds <= 0:
        return None
    return (now - before) / seconds


def workspace_sample(
    subject: Subject, before: Counters | None, now: Counters, *, memory_total: int
) -> WorkspaceSample:
    """Without a limit of its own a workspace may take all memory of the host."""
    if before is None or not _same_run(before, now):
        before = Counters(at=now.at)
    seconds = now.at - before.at
    cpu = rate(before.cpu_seconds, now.cpu_seconds, seconds)
    limit = subject.memory_limit_bytes or memory_total
    return WorkspaceSample(
        workspace_id=subject.workspace_id,
        cpu_percent=None if cpu is None else round(cpu * 100, 2),
        memory_bytes=now.memory_bytes,
        memory_limit_bytes=min(limit, memory_total) if memory_total else limit or None,
        disk_read_rate=_whole(rate(before.disk_read_bytes, now.disk_read_bytes, seconds)),
        disk_write_rate=_whole(rate(before.disk_write_bytes, now.disk_write_bytes, seconds)),
        network_rx_rate=_whole(rate(before.network_rx_bytes, now.network_rx_bytes, seconds)),
        network_tx_rate=_whole(rate(before.network_tx_bytes, now.network_tx_bytes, seconds)),
        processes=now.processes,
        connections=now.connections,
    )


def _same_run(before: Counters, now: Counters) -> bool:
    """A restart begins the processor's total anew, also when nobody has noticed it yet."""
    if before.run != now.run:
        return False
    if before.cpu_seconds is None or now.cpu_seconds is None:
        return True
    return now.cpu_seconds >= before.cpu_seconds


def _whole(value: float | None) -> float | None:
    return None if value is None else float(round(value))
