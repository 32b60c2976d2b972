"""A maintenance window: registries compared, disk reported, old builds removed, a fresh agent.

The server counts windows; a number that is new here asks for one. Workspaces are not touched.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import EngineError
from agent.protocol.report import CycleReport, StepReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.apply.reporter import Reporter
    from agent.overseer.port import MaintenanceEngine
    from agent.store.database import Database

log = logging.getLogger(__name__)
_META = "maintenance"


class Maintenance:
    def __init__(
        self,
        engine: MaintenanceEngine,
        *,
        database: Database,
        reporter: Reporter,
        wanted: Callable[[], int | None],
        check_digests: Callable[[], None],
        next_cycle: Callable[[], int],
        on_end: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._database = database
        self._reporter = reporter
        self._wanted = wanted
        self._check_digests = check_digests
        self._next_cycle = next_cycle
        self._on_end = on_end
        self._woken = threading.Event()

    def wake(self) -> None:
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            if self.is_due():
                self.work()
            self._woken.wait()

    def is_due(self) -> bool:
        """An agent that knows of no window yet begins with the next one; None: the server has told
        it nothing so far. The number is kept before the work begins: a crash over it does not
        repeat the window for ever."""
        wanted, known = self._wanted(), self._database.get_meta(_META)
        if wanted is None or known == str(wanted):
            return False
        self._database.set_meta(_META, str(wanted))
        return known is not None and wanted > int(known)

    def work(self) -> None:
        log.info("maintenance begins")
        started_at = clock.timestamp()
        steps = [
            self._step("check_digests", self._digests),
            self._step("report_disk", self._engine.disk_report),
            self._step("remove_untagged_images", self._engine.prune_images),
        ]
        failed = any(step.outcome != "ok" for step in steps)
        self._reporter.cycle(
            CycleReport(
                seq=0,
                number=self._next_cycle(),
                trigger="maintenance",
                started_at=started_at,
                finished_at=clock.timestamp(),
                outcome="failed" if failed else "ok",
                cleanup="skipped",
                engine_calls=0,
                steps=tuple(steps),
                message="; ".join(step.message for step in steps if step.message),
            )
        )
        self._on_end()

    def _digests(self) -> str:
        self._check_digests()
        return ""

    def _step(self, name: str, work: Callable[[], str]) -> StepReport:
        """One that fails keeps no other from its turn."""
        started_at, begun = clock.timestamp(), clock.monotonic()
        outcome = "ok"
        try:
            message = work()
        except EngineError as problem:
            outcome, message = "failed", str(problem)
        return StepReport(
            step=name,
            resource="host",
            name="",
            cause="maintenance window",
            outcome=outcome,
            started_at=started_at,
            duration_ms=round((clock.monotonic() - begun) * 1000),
            message=message,
        )
