"""The engine's own statistics, for an agent that cannot see the containers' files.

They are slow (a second each on older engines), so a round runs beside the heartbeat, which takes
what the last finished round has found.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import EngineError
from agent.metrics.counters import Counters

if TYPE_CHECKING:
    from agent.metrics.counters import Subject
    from agent.runtime.port import Runtime

_WORKERS = 4


class EngineStats:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._thread: threading.Thread | None = None
        self._found: dict[str, Counters] = {}

    def latest(self, subjects: tuple[Subject, ...]) -> dict[str, Counters]:
        """Container id -> counters of the round before; the next round begins now."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._round, args=(subjects,), name="engine-stats", daemon=True
            )
            self._thread.start()
        return self._found

    def _round(self, subjects: tuple[Subject, ...]) -> None:
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="stats") as pool:
            found = dict(zip(subjects, pool.map(self._one, subjects), strict=True))
        self._found = {s.container_id: counters for s, counters in found.items() if counters}

    def _one(self, subject: Subject) -> Counters | None:
        try:
            stats = self._runtime.container_stats(subject.container_id)
        except EngineError:
            # Gone meanwhile, or the engine is in trouble: the cycles tell that.
            return None
        return Counters(
            at=clock.monotonic(),
            run=subject.run,
            cpu_seconds=stats.cpu_seconds,
            memory_bytes=stats.memory_bytes,
            disk_read_bytes=stats.disk_read_bytes,
            disk_write_bytes=stats.disk_write_bytes,
            network_rx_bytes=stats.network_rx_bytes,
            network_tx_bytes=stats.network_tx_bytes,
            processes=stats.processes,
        )
