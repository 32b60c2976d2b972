"""One sample per heartbeat: each family by its switch, rates against the sample before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import clock
from agent.metrics.cgroups import CgroupReader
from agent.metrics.counters import workspace_sample
from agent.metrics.engine_stats import EngineStats
from agent.metrics.gpus import GpuReader
from agent.metrics.host import HostReader
from agent.protocol.metrics import Metrics

if TYPE_CHECKING:
    from agent.host_facts import Facts
    from agent.metrics.counters import Counters, Subject
    from agent.metrics.subjects import Subjects
    from agent.protocol.metrics import WorkspaceSample
    from agent.protocol.state import MetricsSettings
    from agent.runtime.port import Runtime

# Beats can follow each other at once; rates over less than this are noise.
_SHORTEST = 0.5


class Sampler:
    def __init__(
        self,
        *,
        subjects: Subjects,
        runtime: Runtime,
        gpus: GpuReader | None = None,
        cgroups: CgroupReader | None = None,
        host: HostReader | None = None,
    ) -> None:
        self._subjects = subjects
        self._gpus = gpus or GpuReader()
        self._cgroups = cgroups or CgroupReader()
        self._host = host or HostReader()
        self._stats = EngineStats(runtime)
        self._before: dict[str, Counters] = {}
        self._files_seen = False
        self._last: float | None = None

    def sample(self, wanted: MetricsSettings, facts: Facts) -> Metrics | None:
        """None when the last one was a moment ago."""
        now = clock.monotonic()
        if self._last is not None and now - self._last < _SHORTEST:
            return None
        self._last = now
        host = None
        if wanted.host:
            host = self._host.read(
                disk_free_bytes=facts.disk_free_bytes, disk_total_bytes=facts.disk_total_bytes
            )
        return Metrics(
            host=host,
            gpus=self._gpus.samples() if wanted.gpu else None,
            workspaces=self._workspaces(facts.memory_bytes) if wanted.workspace else None,
        )

    def _workspaces(self, memory_total: int) -> tuple[WorkspaceSample, ...]:
        subjects = self._subjects.running()
        counters = self._counters(subjects)
        before = self._before
        wanted = {subject.container_id for subject in subjects}
        self._before = {i: c for i, c in (before | counters).items() if i in wanted}
        return tuple(
            workspace_sample(
                subject,
                before.get(subject.container_id),
                counters[subject.container_id],
                memory_total=memory_total,
            )
            for subject in subjects
            if subject.container_id in counters
        )

    def _counters(self, subjects: tuple[Subject, ...]) -> dict[str, Counters]:
        """Once files were seen, a container without them has ended: nobody else is asked."""
        self._cgroups.forget_all_but({subject.container_id for subject in subjects})
        found = {}
        for subject in subjects:
            counters = self._cgroups.read(subject)
            if counters is not None:
                found[subject.container_id] = counters
        self._files_seen = self._files_seen or bool(found)
        if self._files_seen or not subjects:
            return found
        # A round that has not ended yet gives the same counters again: no rates, no news.
        known = self._stats.latest(subjects)
        return {i: c for i, c in known.items() if c is not self._before.get(i)}
