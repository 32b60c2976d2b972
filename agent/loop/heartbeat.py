"""The heartbeat loop: beats on while the engine hangs, and says so; applies settings at once."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import clock
from agent.clock import Backoff
from agent.errors import ServerError, Superseded
from agent.host_facts import HostFacts, capabilities
from agent.loop.guard import GuardState
from agent.loop.session import pause_after
from agent.metrics.gpus import GpuReader
from agent.metrics.sampler import Sampler
from agent.protocol.session import EngineInfo, Heartbeat
from agent.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.host_facts import Facts
    from agent.loop.engine_watch import EngineWatch
    from agent.loop.session import Session
    from agent.loop.target import Target
    from agent.metrics.gpu_shelf import GpuShelf
    from agent.metrics.subjects import Subjects
    from agent.protocol.metrics import Metrics
    from agent.protocol.session import AddressRange
    from agent.runtime.port import Runtime
    from agent.server.port import Server

log = logging.getLogger(__name__)

# Seconds after which a resting loop sees that its interval has changed.
_LOOK_AT_SETTINGS = 2.0
_FIRST_VERDICT = 2.0


@dataclass(frozen=True, kw_only=True)
class Update:
    """The image the agent runs from, and what became of the newest try to replace it. `order` is
    the server's that it was for."""

    running: str = ""
    image_id: str = ""
    tried: str = ""
    message: str = ""
    order: int = 0


class HeartbeatLoop:
    """Makes no engine calls of its own: a hanging engine never delays a beat."""

    def __init__(
        self,
        *,
        server: Server,
        session: Session,
        target: Target,
        runtime: Runtime,
        subjects: Subjects,
        trouble: Callable[[], str],
        engine: EngineWatch,
        on_settings: Callable[[], None],
        gpus: GpuShelf,
        on_gpus: Callable[[], None],
        update: Callable[[], Update] = Update,
        guard: Callable[[], GuardState] = GuardState,
        addresses: Callable[[], tuple[AddressRange, ...] | None] = lambda: None,
    ) -> None:
        self._server = server
        self._session = session
        self._target = target
        self._runtime = runtime
        self._trouble = trouble
        self._engine_watch = engine
        self._on_settings = on_settings
        self._update = update
        self._guard = guard
        self._addresses = addresses
        self._has_told_addresses = False
        reader = GpuReader()
        self._shelf = gpus
        self._on_gpus = on_gpus
        self._facts = HostFacts(reader)
        self._sampler = Sampler(subjects=subjects, runtime=runtime, gpus=reader)
        self._sampling_failed = False
        self._next_beat = 0.0
        self._engine: EngineInfo | None = None
        self._beat_now = threading.Event()

    def engine_is(self, engine: EngineInfo) -> None:
        """Told by the listener after each connection: it may be another version now."""
        if engine != self._engine:
            self._engine = engine
            self._beat_now.set()

    def wake(self) -> None:
        self._beat_now.set()

    def run(self, stop: threading.Event) -> None:
        backoff = Backoff(first=1.0, limit=30.0)
        # The first beat of an agent that starts beside a frozen engine says so already.
        self._engine_watch.known.wait(_FIRST_VERDICT)
        while not stop.is_set():
            if not self._session.opened.wait(0.2):
                continue
            try:
                self.beat()
            except Superseded:
                raise
            except ServerError as problem:
                stop.wait(pause_after(problem, backoff))
                continue
            backoff.reset()
            self._rest()

    def _rest(self) -> None:
        """Until the next beat is due; an interval that changes meanwhile counts at once."""
        begun = clock.monotonic()
        while (left := begun + self._pause() - clock.monotonic()) > 0:
            if self._beat_now.wait(min(left, _LOOK_AT_SETTINGS)):
                return
            if not self._has_told_addresses and self._addresses() is not None:
                # The first cycle comes after the first beat, and the server judges by these.
                return

    def _pause(self) -> float:
        """The server's wish keeps agents from beating together; it never makes one silent."""
        interval = self._target.settings().heartbeat_interval
        wish = self._next_beat or interval
        return min(max(wish, interval / 2), interval * 1.5)

    def beat(self) -> None:
        self._beat_now.clear()
        facts = self._facts.read(self._runtime.data_root)
        if self._shelf.saw(facts.gpus_present):
            self._on_gpus()
        engine = self._engine_watch.verdict
        update, guard, addresses = self._update(), self._guard(), self._addresses()
        reply = self._server.heartbeat(
            Heartbeat(
                epoch=self._session.epoch(),
                agent_version=VERSION,
                engine=self._engine,
                capabilities=capabilities(),
                interfaces=facts.interfaces,
                gpus=facts.gpus,
                cpu_count=facts.cpu_count,
                memory_bytes=facts.memory_bytes,
                disk_free_bytes=facts.disk_free_bytes,
                disk_total_bytes=facts.disk_total_bytes,
                agent_time=clock.timestamp(),
                message=engine.message or self._trouble(),
                engine_silent_since=engine.since,
                metrics=self._metrics(facts),
                agent_image=update.running,
                update_image=update.tried,
                update_message=update.message,
                agent_image_id=update.image_id,
                update_order=update.order,
                metadata_guard=guard.state,
                metadata_message=guard.message,
                address_ranges=addresses,
            )
        )
        self._next_beat = reply.next_beat
        self._has_told_addresses = addresses is not None
        if reply.token_due:
            self._renew_token()
        if self._target.apply_settings(reply.settings):
            self._on_settings()

    def _renew_token(self) -> None:
        """Whatever goes wrong, the present one stays good, and the next beat tries again."""
        try:
            if self._server.renew_token(epoch=self._session.epoch()):
                log.info("this agent has a new token")
        except Superseded:
            raise
        except (ServerError, OSError) as problem:
            log.warning("the agent keeps its token for now: %s", problem)

    def _metrics(self, facts: Facts) -> Metrics | None:
        """Whatever a kernel's files hold, the beat itself goes out."""
        try:
            sample = self._sampler.sample(self._target.settings().metrics, facts)
        except Exception:
            if not self._sampling_failed:
                log.exception("the host's metrics could not be read")
            self._sampling_failed = True
            return None
        self._sampling_failed = False
        return sample
