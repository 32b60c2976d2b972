"""Puts the agent's parts together and runs its loops as threads until it is told to stop."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import AgentError, ServerError, Superseded
from agent.fetch.client import HttpFetcher
from agent.fetch.registry import RegistryGate
from agent.host_facts import free_bytes
from agent.host_network.addresses import HostAddresses
from agent.loop.assembly import make_parts
from agent.loop.cycle import CycleLoop
from agent.loop.digests import DigestWatch
from agent.loop.engine_turns import EngineTurns
from agent.loop.engine_watch import EngineWatch
from agent.loop.events import EngineListener
from agent.loop.guard import GuardState, MetadataGuard
from agent.loop.heartbeat import HeartbeatLoop, Update
from agent.loop.maintenance import Maintenance
from agent.loop.poll import PollLoop
from agent.loop.registries import RegistryTests
from agent.loop.report import ReportLoop
from agent.loop.room import RoomWatch
from agent.loop.self_watch import SelfWatch
from agent.loop.wake import Reasons
from agent.overseer.order import order_in
from agent.overseer.own_id import own_container_id
from agent.overseer.status import read_trouble
from agent.server.socket import ServerSocket
from agent.sessions.wire import Wire
from agent.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config import Config
    from agent.fetch.registry import RegistryCheck
    from agent.guard.port import Guard
    from agent.overseer.port import AgentEngine
    from agent.runtime.port import Runtime
    from agent.server.port import Server
    from agent.store.identity import Identity

log = logging.getLogger(__name__)

EXIT_SUPERSEDED = 3
EXIT_CRASHED = 70
_GRACE = 10.0


class Supervisor:
    def __init__(
        self,
        config: Config,
        identity: Identity,
        *,
        runtime: Runtime,
        server: Server,
        free_bytes: Callable[[str], int | None] = free_bytes,
        agents: AgentEngine | None = None,
        own_id: str | None = None,
        find_guard: Callable[[], Guard] | None = None,
        addresses: HostAddresses | None = None,
        registries: RegistryCheck | None = None,
    ) -> None:
        self._config = config
        self._stop = threading.Event()
        self._exit_code = 0
        self._database = Database(config.state_dir / "agent.sqlite3")
        registries = registries or RegistryGate(HttpFetcher())
        self.parts = make_parts(
            config,
            identity,
            self._database,
            runtime=runtime,
            server=server,
            registries=registries,
            free_bytes=free_bytes,
            on_session=self._session_opened,
            addresses=addresses or HostAddresses(),
        )
        self.cycles = CycleLoop(self.parts)
        self.poll = PollLoop(
            server=server,
            session=self.parts.session,
            target=self.parts.target,
            host_id=identity.host_id,
            on_change=self._state_changed,
            on_rejected=self._rejected,
        )
        self.engine_watch = EngineWatch(runtime, on_turn=self._engine_turned)
        self.self_watch = self._self_watch(agents, own_id)
        self.maintenance = self._maintenance(agents)
        self.heartbeat = self._heartbeat(runtime, server)
        self.guard = self._guard(find_guard)
        self.engine_turns = EngineTurns(
            self.parts, self.cycles, self.heartbeat, guard=lambda: self.guard
        )
        self.reports = ReportLoop(
            server=server, session=self.parts.session, outbox=self.parts.outbox
        )
        self._watch(runtime, registries)

    def _heartbeat(self, runtime: Runtime, server: Server) -> HeartbeatLoop:
        return HeartbeatLoop(
            server=server,
            session=self.parts.session,
            target=self.parts.target,
            runtime=runtime,
            subjects=self.parts.subjects,
            gpus=self.parts.gpus,
            on_gpus=lambda: self.parts.wake.request("gpus"),
            trouble=lambda: self.cycles.trouble or self.parts.disk.message(),
            engine=self.engine_watch,
            on_settings=self._settings_changed,
            update=self._update,
            guard=lambda: self.guard.state if self.guard else GuardState(),
            addresses=self.parts.addresses.told,
        )

    def _self_watch(self, agents: AgentEngine | None, own_id: str | None) -> SelfWatch | None:
        """Only an agent in a container can be replaced, unless others see to that."""
        own_id = own_container_id() if own_id is None else own_id
        if agents is None or not own_id or not self._config.replaces_itself:
            return None
        target, folder = self.parts.target, self._config.state_dir
        return SelfWatch(
            agents,
            own_id=own_id,
            order=lambda: order_in(target.settings()),
            answered=lambda: read_trouble(folder).answered,
        )

    def _maintenance(self, agents: AgentEngine | None) -> Maintenance | None:
        if agents is None:
            return None
        return Maintenance(
            agents,
            database=self._database,
            reporter=self.parts.reporter,
            wanted=self.parts.target.maintenance,
            check_digests=self._check_digests,
            next_cycle=self.cycles.take_number,
            on_end=self._maintenance_ended,
        )

    def _guard(self, find: Callable[[], Guard] | None) -> MetadataGuard | None:
        if find is None:
            return None
        return MetadataGuard(
            find,
            database=self._database,
            wanted=lambda: self.parts.target.settings().block_metadata,
            is_allowed=self.parts.policy.metadata_guard,
            on_change=self.heartbeat.wake,
        )

    def _check_digests(self) -> None:
        self.digests.look_at_all()

    def _maintenance_ended(self) -> None:
        """The cycle that was overtaken by the report's number leaves its cleanup to a new one."""
        self.parts.wake.request("maintenance", full=True)
        if self.self_watch is not None:
            self.self_watch.maintenance_ended()

    def _wake_the_slow(self) -> None:
        """What acts on the host's settings, seldom."""
        for part in (self.self_watch, self.maintenance, self.guard):
            if part is not None:
                part.wake()

    def _update(self) -> Update:
        if self.self_watch is None:
            return Update()
        trouble = read_trouble(self._config.state_dir)
        return Update(
            running=self.self_watch.image,
            image_id=self.self_watch.image_id,
            tried=trouble.image,
            message=trouble.message,
            order=trouble.order,
        )

    def _watch(self, runtime: Runtime, registries: RegistryCheck) -> None:
        """What looks at registries, disk and engine beside the cycles."""
        self.digests = DigestWatch(
            runtime=runtime,
            target=self.parts.target,
            reporter=self.parts.reporter,
            works=self.parts.works,
            registries=registries,
        )
        self.registries = RegistryTests(
            runtime=runtime,
            target=self.parts.target,
            reporter=self.parts.reporter,
            registries=registries,
        )
        self.room = RoomWatch(self.parts.disk, on_room=self._room_again)
        self.engine = EngineListener(
            runtime,
            on_event=self.engine_turns.event,
            on_connected=self.engine_turns.connected,
            on_lost=self.engine_turns.lost,
            since=self.parts.ends.since,
        )

    # --- running ---

    def run(self) -> int:
        """Until `stop`; the exit code says why it ended."""
        self._tell_interrupted()
        socket = ServerSocket(
            self._config.server_url,
            token=self.parts.server.token,
            epoch=self.parts.session.epoch,
            on_nudge=self.poll.nudge,
            stop=self._stop,
            plain_http=self._config.plain_http,
            sessions=lambda send: Wire(self.parts.sessions, send),
        )
        self.parts.wake.request("start", full=True)
        loops: list[tuple[str, Callable[[], None]]] = [
            ("engine-ping", lambda: self.engine_watch.run(self._stop)),
            ("engine-events", lambda: self.engine.run(self._stop)),
            ("cycle", lambda: self.cycles.run(self._stop)),
            ("poll", lambda: self.poll.run(self._stop)),
            ("report", lambda: self.reports.run(self._stop)),
            ("heartbeat", lambda: self.heartbeat.run(self._stop)),
            ("socket", socket.run),
            ("sessions", lambda: self.parts.sessions.run(self._stop)),
            ("digests", lambda: self.digests.run(self._stop)),
            ("room", lambda: self.room.run(self._stop)),
        ]
        if self.self_watch is not None:
            loops.append(("self", partial(self.self_watch.run, self._stop)))
        if self.maintenance is not None:
            loops.append(("maintenance", partial(self.maintenance.run, self._stop)))
        if self.guard is not None:
            loops.append(("guard", partial(self.guard.run, self._stop)))
        threads = [
            threading.Thread(target=self._guarded, args=(name, loop), name=name, daemon=True)
            for name, loop in loops
        ]
        for thread in threads:
            thread.start()
        self._stop.wait()
        self._wind_down(threads)
        return self._exit_code

    def _tell_interrupted(self) -> None:
        """What was under way when the agent died may have happened: the ledger says so."""
        for intent in self.parts.journal.unfinished():
            log.warning("a crash interrupted %s %s %r", intent.verb, intent.key, intent.name)
            if intent.event is not None:
                revision = self.parts.target.revision(intent.key)
                self.parts.reporter.interrupted(intent.event, revision=revision)
            self.parts.journal.settle(intent.id)

    def once(self) -> int:
        """One cycle with everything it starts, then the reports."""
        try:
            self.poll.poll()
        except Superseded:
            raise
        except ServerError as problem:
            log.warning("working from the last good document: %s", problem)
        execution = self.cycles.cycle(Reasons(names=("once",), full=True))
        if execution:
            execution.done.wait()
        self.parts.works.wait_idle(self.parts.target.settings().build_timeout)
        failed = self.cycles.trouble or (execution and execution.failed)
        if self.parts.session.epoch():
            self.reports.drain()
        self._close()
        return 1 if failed else 0

    def stop(self, exit_code: int = 0) -> None:
        """Only asks for the end; `run` returns when the loops have come to theirs."""
        self._exit_code = self._exit_code or exit_code
        self.parts.executor.stopping.set()
        self._stop.set()

    def _guarded(self, name: str, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Superseded as problem:
            log.error("another agent runs this host, this one changes nothing more: %s", problem)
            self.stop(EXIT_SUPERSEDED)
        except Exception:
            # A dead loop would leave an agent that only looks alive: better a restart.
            log.exception("the %s loop ended unexpectedly", name)
            self.stop(EXIT_CRASHED)

    def _wind_down(self, threads: list[threading.Thread]) -> None:
        """Finish or abandon the current steps, flush, go. Workspaces are none of its business."""
        log.info("stopping")
        deadline = clock.monotonic() + _GRACE
        self.parts.wake.request("stop")
        self.poll.nudge()
        self.heartbeat.wake()
        self.digests.wake()
        self._wake_the_slow()
        self.parts.outbox.wake()
        self.engine.close()
        self.parts.works.shutdown()
        while not self.parts.executor.is_idle() and clock.monotonic() < deadline:
            clock.sleep(0.05)
        for thread in threads:
            thread.join(max(0.0, min(2.0, deadline - clock.monotonic())))
        if self._exit_code != EXIT_SUPERSEDED and self.parts.session.epoch():
            try:
                self.reports.drain()
            except AgentError as problem:
                log.warning("reports stay in the outbox: %s", problem)
        self._close()

    def _close(self) -> None:
        self.parts.works.shutdown()
        self.registries.shutdown()
        self.parts.executor.shutdown()

    # --- turns ---

    def _session_opened(self) -> None:
        self.parts.outbox.forget_reported()
        self.parts.wake.request("session", full=True)
        if self.guard is not None:
            # The answer carried settings that it may not have seen.
            self.guard.wake()

    def _state_changed(self) -> None:
        self._wake_the_slow()
        self.parts.wake.request("state")
        self.digests.wake()
        self.registries.follow()

    def _settings_changed(self) -> None:
        self._wake_the_slow()
        self.parts.wake.request("settings")
        self.parts.works.advance()
        self.digests.wake()
        self.poll.nudge()

    def _room_again(self) -> None:
        self.parts.wake.request("disk")
        self.parts.works.advance()
        self.heartbeat.wake()

    def _rejected(self, why: str) -> None:
        self.cycles.tell_failure(AgentError(why), trigger="state", started_at=clock.timestamp())

    def _engine_turned(self, answers: bool) -> None:
        self.engine_turns.turned(answers)
