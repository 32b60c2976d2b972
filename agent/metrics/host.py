"""How busy the machine is, from /proc by way of psutil."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from agent import clock
from agent.metrics import texts
from agent.metrics.counters import rate
from agent.protocol.metrics import HostSample


@dataclass(frozen=True, kw_only=True)
class Totals:
    at: float
    busy: float
    all: float
    disk: tuple[int, int] | None
    network: tuple[int, int] | None


class HostReader:
    """Rates come from the difference to the sample before; the first one has none."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        # Of the first process: an agent in a container sees its own network otherwise.
        self._network_files = (proc / "1" / "net" / "dev", proc / "net" / "dev")
        self._before: Totals | None = None

    def read(self, *, disk_free_bytes: int, disk_total_bytes: int) -> HostSample:
        now, before = self._totals(), self._before
        self._before = now
        memory = psutil.virtual_memory()
        seconds = now.at - before.at if before else 0.0
        disk = _rates(before.disk if before else None, now.disk, seconds)
        network = _rates(before.network if before else None, now.network, seconds)
        return HostSample(
            cpu_percent=_percent(before, now),
            memory_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            disk_used_bytes=max(0, disk_total_bytes - disk_free_bytes),
            disk_total_bytes=disk_total_bytes,
            disk_read_rate=disk[0],
            disk_write_rate=disk[1],
            network_rx_rate=network[0],
            network_tx_rate=network[1],
            load=round(psutil.getloadavg()[0], 2),
            processes=len(psutil.pids()),
        )

    def _totals(self) -> Totals:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Time of guests is part of the user's time already.
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        whole = sum(times) - guests
        disk = psutil.disk_io_counters()
        return Totals(
            at=clock.monotonic(),
            busy=whole - idle,
            all=whole,
            disk=(disk.read_bytes, disk.write_bytes) if disk else None,
            network=self._network(),
        )

    def _network(self) -> tuple[int, int] | None:
        for path in self._network_files:
            try:
                return texts.network_bytes(path.read_text(), ignored=texts.ENGINE_INTERFACES)
            except OSError:
                continue
        return None


def _percent(before: Totals | None, now: Totals) -> float | None:
    if before is None or now.all <= before.all:
        return None
    return round(100 * min(1.0, max(0.0, (now.busy - before.busy) / (now.all - before.all))), 2)


def _rates(
    before: tuple[int, int] | None, now: tuple[int, int] | None, seconds: float
) -> tuple[float | None, float | None]:
    if before is None or now is None:
        return None, None
    rates = (rate(old, new, seconds) for old, new in zip(before, now, strict=True))
    first, second = (None if value is None else float(round(value)) for value in rates)
    return first, second
