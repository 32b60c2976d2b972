"""All long work of the agent: one per image, joined never doubled, a few at a time."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from agent.diff.view import object_key
from agent.protocol.report import BuildStatus, ImageObserved
from agent.steps import IMAGE, BuildImage, CancelBuild, PullImage
from agent.work.images import ImageWork
from agent.work.log_shipper import LogShipper

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.apply.failures import Failures
    from agent.apply.reporter import Reporter
    from agent.loop.target import Target
    from agent.runtime.port import Runtime
    from agent.server.port import Server
    from agent.store.journal import Journal
    from agent.store.outbox import Outbox

log = logging.getLogger(__name__)

# The host's setting decides how many run at once; this only bounds the threads.
_MOST_THREADS = 16
_FLUSH_PATIENCE = 3.0


class Works:
    def __init__(
        self,
        *,
        runtime: Runtime,
        server: Server,
        journal: Journal,
        outbox: Outbox,
        reporter: Reporter,
        failures: Failures,
        target: Target,
        epoch: Callable[[], int],
        on_end: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._server = server
        self._journal = journal
        self._outbox = outbox
        self._reporter = reporter
        self._failures = failures
        self._target = target
        self._epoch = epoch
        self._on_end = on_end
        self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="work")
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        self._at_work = 0
        self._running: dict[str, ImageWork] = {}
        # (epoch, build id) of results this session was told.
        self._told: set[tuple[int, str]] = set()
        self._idle = threading.Event()
        self._idle.set()

    # --- what the planner knows ---

    def running_builds(self) -> dict[str, str]:
        """Image id -> build id (empty for a fetch without a build row)."""
        with self._lock:
            return {image_id: work.step.build_id for image_id, work in self._running.items()}

    def busy_keys(self) -> frozenset[str]:
        with self._lock:
            return frozenset(object_key(IMAGE, image_id) for image_id in self._running)

    def cancelling(self) -> frozenset[str]:
        with self._lock:
            return frozenset(w.step.build_id for w in self._running.values() if w.is_cancelled)

    def wait_idle(self, timeout: float) -> bool:
        return self._idle.wait(timeout)

    # --- what the executor asks for ---

    def start(self, step: PullImage | BuildImage) -> None:
        settings = self._target.settings()
        is_pull = isinstance(step, PullImage)
        shipper = None
        if step.build_id:
            shipper = LogShipper(self._server, step.build_id, epoch=self._epoch)
        work = ImageWork(
            step,
            self._runtime,
            timeout=settings.pull_timeout if is_pull else settings.build_timeout,
            write=shipper.write if shipper else lambda _: None,
            on_progress=self._progress,
        )
        with self._lock:
            if step.image_id in self._running:
                return
            self._running[step.image_id] = work
            self._idle.clear()
        if step.build_id:
            self._journal.build_started(step.build_id, step.image_id)
        self._pool.submit(self._run, work, shipper)

    def cancel(self, step: CancelBuild) -> None:
        with self._lock:
            work = self._running.get(step.image_id)
        if work is not None and work.step.build_id == step.build_id:
            work.cancel(step.cause)
            return
        self._end(
            BuildStatus(
                seq=0,
                image_id=step.image_id,
                build_id=step.build_id,
                status="cancelled",
                message="Cancelled before it began.",
            )
        )

    def shutdown(self) -> None:
        """The journal still says `started`: the next agent runs the build again."""
        with self._lock:
            running = list(self._running.values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for work in running:
            work.cancel("the agent stops")

    # --- the work itself ---

    def _run(self, work: ImageWork, shipper: LogShipper | None) -> None:
        step = work.step
        self._wait_for_turn(work)
        try:
            result = work.run()
            if shipper is not None:
                shipper.close(patience=_FLUSH_PATIENCE)
                result = msgspec.structs.replace(result, log_bytes=shipper.sent_bytes)
            if work.made_it:
                self._journal.image_made(step.image_id)
            if work.is_cancelled and result.message == "Cancelled: the agent stops.":
                return
            if step.build_id:
                self._end(result)
            else:
                self._fetched(result)
            log.info("%s %r: %s %s", step.verb, step.name, result.status, result.message)
        except Exception:
            # The thread belongs to a pool: without this line a bug would vanish in a future.
            log.exception("%s %r ended unexpectedly", step.verb, step.name)
        finally:
            with self._turn:
                self._at_work -= 1
                self._running.pop(step.image_id, None)
                if not self._running:
                    self._idle.set()
                self._turn.notify_all()
            self._on_end()

    def _wait_for_turn(self, work: ImageWork) -> None:
        """Pulls and builds share the host's places; a cancelled one needs none."""
        with self._turn:
            while not work.is_cancelled:
                if self._at_work < max(1, self._target.settings().build_parallel):
                    break
                self._turn.wait(1.0)
            self._at_work += 1

    def _progress(self, status: BuildStatus) -> None:
        if status.build_id:
            self._reporter.build(status)

    def _end(self, result: BuildStatus) -> None:
        self._journal.build_ended(result)
        self._told.add((self._epoch(), result.build_id))
        self._reporter.build(result)

    def _fetched(self, result: BuildStatus) -> None:
        """A vanished image was fetched again: no build row, but the server hears of it."""
        key = object_key(IMAGE, result.image_id)
        if result.status == "finished":
            self._failures.clear(key)
        else:
            revision = self._target.revision(key) or 0
            self._failures.record(key, result.message, revision=revision)
        self._outbox.put(
            ImageObserved(
                seq=0,
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
