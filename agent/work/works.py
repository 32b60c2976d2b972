"""All long work of the agent: one per image, joined never doubled, a few at a time."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from agent.plan import ImageFinding
from agent.protocol.report import BuildStatus
from agent.steps import IMAGE, BuildImage, CancelBuild, PullImage, SnapshotImage
from agent.work.images import ImageWork
from agent.work.lanes import Lanes
from agent.work.logs import BuildLogs
from agent.work.snapshots import SnapshotWork
from agent.work.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agent.apply.failures import Failures
    from agent.apply.reporter import Reporter
    from agent.fetch.port import Fetcher
    from agent.fetch.registry import RegistryCheck
    from agent.loop.target import Target
    from agent.runtime.port import Runtime
    from agent.server.port import Server
    from agent.store.journal import Journal
    from agent.work.disk import DiskBrake
    from agent.work.port import LongStep, Work

log = logging.getLogger(__name__)

# The host's setting decides how many run at once; this only bounds the threads.
_MOST_THREADS = 48
_FLUSH_PATIENCE = 3.0
# Who ends a flood waits for its end, not for megabytes of it: the result goes first, and says how
# many bytes of the log are still to come.
_FLUSH_CUT_SHORT = 0.25
# Nothing is left when the result is told, unless the engine takes its time.
_TIDY_FIRST = 3.0
_TIDY_AFTERWARDS = 10.0
# An engine that dies each time is not asked for ever.
_MOST_TRIES = 3
_IN_WORDS = {"build": "builds", "pull": "pulls", "snapshot": "snapshots"}


class Works:
    def __init__(
        self,
        *,
        runtime: Runtime,
        server: Server,
        journal: Journal,
        reporter: Reporter,
        failures: Failures,
        target: Target,
        disk: DiskBrake,
        registries: RegistryCheck,
        epoch: Callable[[], int],
        on_end: Callable[[], None],
        fetcher: Fetcher,
        scratch: Path,
    ) -> None:
        self._runtime = runtime
        self._journal = journal
        self._reporter = reporter
        self._failures = failures
        self._target = target
        self._disk = disk
        self._registries = registries
        self._epoch = epoch
        self._on_end = on_end
        self._fetcher = fetcher
        self._scratch = scratch
        self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="work")
        self._lanes = Lanes()
        self._lock = threading.Lock()
        # One at a time says who waits: what has begun meanwhile would be told as waiting again.
        self._turns = threading.Lock()
        self._running: dict[str, Work] = {}
        self._logs = BuildLogs(server, epoch=epoch)
        self._tries: dict[str, int] = {}
        # (epoch, build id) of results this session was told.
        self._told: set[tuple[int, str]] = set()
        self._leaving = False
        self._idle = threading.Event()
        self._idle.set()

    # --- what the planner knows ---

    def running_builds(self) -> dict[str, str]:
        """Image id -> build id (empty for a fetch without a build row)."""
        with self._lock:
            return {image_id: work.step.build_id for image_id, work in self._running.items()}

    def busy_keys(self) -> frozenset[str]:
        """Images at work, and workspaces that are being committed."""
        with self._lock:
            return frozenset(key for work in self._running.values() for key in work.claims())

    def cancelling(self) -> frozenset[str]:
        with self._lock:
            return frozenset(w.step.build_id for w in self._running.values() if w.is_cancelled)

    def wait_idle(self, timeout: float) -> bool:
        return self._idle.wait(timeout)

    # --- what the executor asks for ---

    def start(self, step: LongStep) -> None:
        work = self._work(step)
        with self._lock:
            if step.image_id in self._running:
                return
            self._running[step.image_id] = work
            self._idle.clear()
        self._lanes.put(work)
        self.advance()

    def advance(self) -> None:
        """Begin whatever may begin now; also after a setting changed or the disk got room."""
        if self._leaving:
            return
        with self._turns:
            brake = self._disk.message()
            places = max(1, self._target.settings().build_parallel)
            for work in self._lanes.take(places=places, urgent_only=bool(brake)):
                self._pool.submit(self._run, work)
            for work in self._lanes.waiting():
                why = brake or _turn_sentence(work.lane, places)
                self._progress(_status(work.step, "pending", why))

    def cancel(self, step: CancelBuild) -> None:
        with self._lock:
            work = self._running.get(step.image_id)
        if work is not None and work.step.build_id == step.build_id:
            if not self._lanes.withdraw(work):
                work.cancel(step.cause)
                return
            self._forget(work)
        if step.build_id and self._journal.build_result(step.build_id) is None:
            begun = self._journal.was_begun(step.build_id)
            message = f"Cancelled: {step.cause}." if begun else "Cancelled before it began."
            self._end(_status(step, "cancelled", message))

    def cut_short(self, steps: Iterable[CancelBuild]) -> None:
        """Ends at once what has begun; the plan of this cycle tells of it."""
        for step in steps:
            with self._lock:
                work = self._running.get(step.image_id)
            if work is None or work.step.build_id != step.build_id:
                continue
            # What waits for its turn has nothing to end: the plan withdraws it.
            if not self._lanes.is_waiting(work):
                work.cancel(step.cause)

    def shutdown(self) -> None:
        """The journal still says `started`: the next agent runs the build again."""
        self._leaving = True
        with self._lock:
            running = list(self._running.values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for work in running:
            work.leave()

    # --- the work itself ---

    def _work(self, step: LongStep) -> Work:
        settings = self._target.settings()
        if isinstance(step, SnapshotImage):
            return SnapshotWork(
                step,
                self._runtime,
                timeout=settings.build_timeout,
                write=lambda text: self._logs.write(step.build_id, text),
                on_progress=self._progress,
            )
        is_pull = isinstance(step, PullImage)
        return ImageWork(
            step,
            self._runtime,
            registries=self._registries,
            timeout=settings.pull_timeout if is_pull else settings.build_timeout,
            write=lambda text: self._logs.write(step.build_id, text),
            on_progress=self._progress,
            sources=Sources(
                fetcher=self._fetcher, scratch=self._scratch, allow=settings.build_allow
            ),
        )

    def _run(self, work: Work) -> None:
        step = work.step
        try:
            self._began(step)
            result = self._result(work)
            if work.made_id:
                self._journal.image_made(step.image_id)
                if isinstance(step, PullImage):
                    self._journal.pulled(work.made_id, step.image_id)
            if result is None:
                log.info("%s %r: left without an end", step.verb, step.name)
            elif step.build_id:
                self._end(result)
            else:
                self._fetched(step, result)
            if result is not None:
                log.info("%s %r: %s %s", step.verb, step.name, result.status, result.message)
                work.tidy(_TIDY_AFTERWARDS)
                if isinstance(step, BuildImage) and not work.broke_off:
                    self._journal.steps_cleared(step.image_id)
        except Exception:
            # The thread belongs to a pool: without this line a bug would vanish in a future.
            log.exception("%s %r ended unexpectedly", step.verb, step.name)
        finally:
            self._lanes.done(work)
            self._forget(work)
            self.advance()
            self._on_end()

    def _began(self, step: LongStep) -> None:
        if not step.build_id:
            return
        self._logs.open(step.build_id)
        self._journal.build_started(step.build_id, step.image_id)
        if isinstance(step, BuildImage):
            self._journal.steps_begun(step.image_id, push_to=step.push_to)
        if isinstance(step, SnapshotImage):
            self._reporter.turn(step.workspace_id, revision=step.revision, status="snapshotting")

    def _result(self, work: Work) -> BuildStatus | None:
        step = work.step
        try:
            result = work.run()
        except Exception as problem:
            log.exception("%s %r failed unexpectedly", step.verb, step.name)
            result = _status(step, "failed", f"Internal error: {problem}")
        if result is None and not self._leaving:
            result = self._tried_too_often(step)
            if result is None:
                # The next try goes on with the same log.
                return None
        if result is not None:
            work.tidy(_TIDY_FIRST)
        patience = _FLUSH_CUT_SHORT if work.is_cancelled else _FLUSH_PATIENCE
        log_bytes = self._logs.close(step.build_id, patience=patience)
        return result and msgspec.structs.replace(result, log_bytes=log_bytes)

    def _tried_too_often(self, step: LongStep) -> BuildStatus | None:
        key = step.build_id or step.image_id
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if tries < _MOST_TRIES:
            return None
        del self._tries[key]
        message = f"The engine broke off {tries} times in the middle of it."
        self._logs.write(step.build_id, f"{message}\n")
        return _status(step, "failed", message)

    def _forget(self, work: Work) -> None:
        with self._lock:
            self._running.pop(work.step.image_id, None)
            if not self._running:
                self._idle.set()

    def _progress(self, status: BuildStatus) -> None:
        if status.build_id:
            self._reporter.build(status)

    def _end(self, result: BuildStatus) -> None:
        self._logs.close(result.build_id)
        self._journal.build_ended(result)
        self._journal.forget_builds(wanted=self._target.builds())
        self._tries.pop(result.build_id, None)
        self._told.add((self._epoch(), result.build_id))
        self._reporter.build(result)

    def _fetched(self, step: LongStep, result: BuildStatus) -> None:
        """Without a build row: an image that vanished, or one that the platform itself needs."""
        key = step.key
        if result.status == "finished":
            self._failures.clear(key)
        else:
            revision = self._target.revision(key) or 0
            self._failures.record(key, result.message, revision=revision)
        if not key.startswith(f"{IMAGE}:"):
            return
        self._reporter.found(
            ImageFinding(
                image_id=result.image_id,
                present=result.status == "finished",
                engine_id=result.engine_id,
                digest=result.digest,
                size_bytes=result.size_bytes,
                message=result.message,
            )
        )

    def resend(self, build_id: str) -> None:
        """The server still waits for a result this agent has: say it again, once per session."""
        if (self._epoch(), build_id) in self._told:
            return
        self._told.add((self._epoch(), build_id))
        result = self._journal.build_result(build_id)
        if result is not None:
            self._reporter.build(result)


def _status(step: LongStep | CancelBuild, status: str, message: str) -> BuildStatus:
    return BuildStatus(
        seq=0,
        image_id=step.image_id,
        build_id=step.build_id,
        status=status,
        message=message,
    )


def _turn_sentence(lane: str, places: int) -> str:
    most = f"one {lane}" if places == 1 else f"{places} {_IN_WORDS[lane]}"
    return f"Waiting for its turn: this host does {most} at a time."
