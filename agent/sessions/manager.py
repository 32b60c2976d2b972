"""All sessions of this agent: opens them, counts them, and ends those that were left or are over.

A session runs in threads of its own and touches neither the reconciler nor its lists; the socket's
thread only hands frames over and is never held up.
"""

from __future__ import annotations

import logging
import secrets
import threading
from typing import TYPE_CHECKING, Final

from agent import clock
from agent.errors import AgentError, EngineUnavailable
from agent.protocol.counting import counted
from agent.protocol.sessions import (
    ATTACH,
    BUSY,
    ENDED,
    EXEC,
    LAYER,
    LOGS,
    NOT_THERE,
    PROXY,
    UNSUPPORTED,
    SessionClose,
    SessionControl,
    SessionOpen,
)
from agent.sessions import limits
from agent.sessions.containers import Containers, Refused
from agent.sessions.layers import LayerSessions
from agent.sessions.logs import Changes, LogSessions
from agent.sessions.proxies import ProxySessions
from agent.sessions.terminals import ExecSession, attach

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.runtime.port import Runtime
    from agent.sessions.channel import Channel
    from agent.store.previous_logs import PreviousLogs
    from agent.store.terminals import TerminalFiles

log = logging.getLogger(__name__)

# With the time it takes to end the processes, a left terminal is gone within ten seconds.
GRACE: Final = 8.0
IDLE: Final = 30 * 60.0
LONGEST: Final = 4 * 3600.0
_TURN: Final = 0.5
_SWEEP: Final = 30.0
_SHUTDOWN: Final = 4.0


class Sessions:
    def __init__(
        self,
        *,
        runtime: Runtime,
        containers: Containers,
        previous: PreviousLogs,
        files: TerminalFiles,
        grace: float = GRACE,
        idle: float = IDLE,
        longest: float = LONGEST,
    ) -> None:
        self._runtime = runtime
        self._containers = containers
        self._files = files
        self._grace, self._idle, self._longest = grace, idle, longest
        self._changes = Changes()
        self._logs = LogSessions(runtime, containers, previous, self._changes)
        self._lock = threading.Lock()
        self._streams: dict[Channel, limits.Place] = {}
        self._terminals: dict[str, ExecSession] = {}
        self._starting: set[str] = set()
        self._kinds: dict[str, Callable[[Channel, SessionOpen], None]] = {
            LOGS: self._logs.serve,
            EXEC: self._serve_exec,
            ATTACH: self._serve_attach,
            PROXY: ProxySessions(runtime, containers).serve,
            LAYER: LayerSessions(runtime, containers).serve,
        }

    # --- told by others ---

    def open(self, channel: Channel, request: SessionOpen) -> None:
        """Returns at once; the session reads and writes the channel from now on."""
        name = f"session-{request.kind}-{channel.number}"
        threading.Thread(
            target=self._serve, args=(channel, request), name=name, daemon=True
        ).start()

    def workspace_changed(self) -> None:
        self._changes.tell()

    def count(self) -> int:
        with self._lock:
            return len(self._streams)

    # --- one session ---

    def _serve(self, channel: Channel, request: SessionOpen) -> None:
        try:
            serve = self._kinds.get(request.kind)
            if serve is None:
                raise Refused(
                    f"This agent does not know sessions of kind {request.kind!r}. Update it.",
                    UNSUPPORTED,
                )
            with self._lock:
                limits.check(limits.place_of(request), self._taken(besides=request.resume))
                self._streams[channel] = limits.place_of(request)
            serve(channel, request)
        except Refused as refusal:
            channel.close(SessionClose(error=str(refusal), code=refusal.code))
        except EngineUnavailable as problem:
            channel.close(SessionClose(error=str(problem), code=BUSY))
        except AgentError as problem:
            channel.close(SessionClose(error=str(problem)))
        except Exception:
            log.exception("session %s of %s failed", request.kind, request.workspace_id)
            channel.close(SessionClose(error="The agent failed; its log says why."))
        finally:
            with self._lock:
                self._streams.pop(channel, None)

    def _taken(self, *, besides: str) -> list[limits.Place]:
        """Terminals that wait for their user count too, except the one that user comes back to.
        What is just being ended has made room already."""
        left = [
            limits.Place(False, session.workspace_id, session.user)
            for session in self._terminals.values()
            if session.left_at is not None and not session.is_ending and session.id != besides
        ]
        live = [place for channel, place in self._streams.items() if channel.end is None]
        return [*live, *left]

    def _serve_exec(self, channel: Channel, request: SessionOpen) -> None:
        session = self._resumed(request) if request.resume else self._started(request)
        if request.size is not None:
            session.resize(*request.size)
        session.serve(channel)

    def _resumed(self, request: SessionOpen) -> ExecSession:
        with self._lock:
            session = self._terminals.get(request.resume)
        mine = session is not None and (session.user, session.workspace_id) == (
            request.user,
            request.workspace_id,
        )
        if session is None or not mine or session.is_ending:
            raise Refused("That terminal is over. Open a new one.", NOT_THERE)
        return session

    def _started(self, request: SessionOpen) -> ExecSession:
        run = self._containers.running(request.workspace_id)
        session_id = secrets.token_hex(16)
        with self._lock:
            self._starting.add(session_id)
        try:
            terminal = self._runtime.start_exec(
                run.id, request.command, lambda record: self._files.save(session_id, record)
            )
            session = ExecSession(
                session_id=session_id,
                workspace_id=request.workspace_id,
                user=request.user,
                terminal=terminal,
                runtime=self._runtime,
                files=self._files,
                on_over=self._forget,
            )
            with self._lock:
                self._terminals[session_id] = session
        finally:
            with self._lock:
                self._starting.discard(session_id)
        return session

    def _forget(self, session: ExecSession) -> None:
        with self._lock:
            self._terminals.pop(session.id, None)

    def _serve_attach(self, channel: Channel, request: SessionOpen) -> None:
        run = self._containers.running(request.workspace_id)
        terminal = self._runtime.attach_container(run.id)
        if request.size is not None:
            terminal.resize(*request.size)
        channel.say(SessionControl(opened=True, container=run.id))
        attach(channel, terminal)

    # --- time passes ---

    def run(self, stop: threading.Event) -> None:
        sweep_at = clock.monotonic()
        while not stop.is_set():
            if clock.monotonic() >= sweep_at:
                self._sweep()
                sweep_at = clock.monotonic() + _SWEEP
            self._end_overdue(clock.monotonic())
            stop.wait(_TURN)
        self._shut_down()

    def _end_overdue(self, now: float) -> None:
        with self._lock:
            terminals = list(self._terminals.values())
            streams = [
                channel
                for channel, place in self._streams.items()
                if not (place.is_log or place.is_proxy or place.is_look)
            ]
        for session in terminals:
            if session.is_ending:
                continue
            if session.left_at is not None and now - session.left_at > self._grace:
                self._in_background(session.kill)
            elif session.channel is not None and now - session.started_at > self._longest:
                hours = round(self._longest / 3600)
                session.channel.close(
                    _over(f"A terminal stays open for {counted(hours, 'hour')} at most.")
                )
        for channel in streams:
            if now - channel.active_at > self._idle:
                minutes = round(self._idle / 60)
                channel.close(
                    _over(f"Nothing happened in this terminal for {counted(minutes, 'minute')}.")
                )

    def _sweep(self) -> None:
        """Processes that an agent left which was killed, or that could not be ended before."""
        for session_id, record in self._files.all().items():
            with self._lock:
                if session_id in self._terminals or session_id in self._starting:
                    continue
            try:
                if self._runtime.end_exec(record):
                    self._files.forget(session_id)
            except AgentError as problem:
                log.warning("a left terminal could not be ended: %s", problem)

    def _shut_down(self) -> None:
        """What cannot be ended in time is swept at the next start."""
        with self._lock:
            terminals = list(self._terminals.values())
            channels = list(self._streams)
        for channel in channels:
            channel.close(_over("The agent is stopping."))
        threads = [self._in_background(session.kill) for session in terminals]
        deadline = clock.monotonic() + _SHUTDOWN
        for thread in threads:
            thread.join(max(0.0, deadline - clock.monotonic()))

    @staticmethod
    def _in_background(act: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=act, name="session-end", daemon=True)
        thread.start()
        return thread


def _over(sentence: str) -> SessionClose:
    return SessionClose(error=sentence, code=ENDED)
