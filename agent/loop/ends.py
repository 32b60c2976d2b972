"""Tells every end of our containers once: gathers the engine's events, and settles them by looks.

Nothing here asks the engine for anything: looks are made anyway, and events come by themselves.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from agent import clock
from agent.diff.ends import Death, Run, ends_since, start_of
from agent.protocol import naming
from agent.protocol.redaction import redacted
from agent.protocol.report import WorkspaceEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent.diff.ends import End, Verdict
    from agent.observed import ObservedContainer
    from agent.runtime.port import EngineEvent
    from agent.store.database import Database
    from agent.store.outbox import Outbox
    from agent.store.runs import Runs

# How long an event of a restart that was seen may take.
PATIENCE: Final = 2.0
# An end that no look explained for so long was none of ours to tell.
_STALE: Final = 120.0
# Of these a process does not end unless it chooses to.
_HARMLESS: Final = frozenset({10, 12, 17, 18, 23, 28})
_MOST_DEATHS: Final = 500
_LONGEST_OUTPUT: Final = 2000


@dataclass(frozen=True, kw_only=True)
class _Heard:
    death: Death
    # By our own clock.
    since: float


class EndWatch:
    def __init__(
        self,
        database: Database,
        runs: Runs,
        outbox: Outbox,
        *,
        look_again: Callable[[float], None],
    ) -> None:
        self._database = database
        self._runs = runs
        self._outbox = outbox
        self._look_again = look_again
        self._lock = threading.Lock()
        self._heard: dict[str, list[_Heard]] = {}
        self._killed: set[str] = set()
        self._out_of_memory: set[str] = set()
        self._heard_until = 0
        # Events up to here that come again are known.
        self._replayed_until = 0
        self._engine_lost = False
        # What came before the look at hand began.
        self._drained: dict[str, list[_Heard]] = {}
        self._short_since: dict[str, float] = {}

    def since(self) -> int:
        """Where a new stream of events begins, so that none is missed; 0 is now."""
        with self._lock:
            newest = self._heard_until
            self._replayed_until = newest
        newest = newest or self._runs.heard_until()
        if not newest:
            # The very first stream. The next agent asks for what comes after it, even if this one
            # hears nothing; where the engine's clock is another one, more or less comes again.
            self._runs.save_heard(int(clock.utc_now().timestamp()) * 10**9)
        return newest

    def lost(self) -> None:
        """The stream of events broke off."""
        with self._lock:
            self._engine_lost = True

    def heard(self, event: EngineEvent) -> None:
        with self._lock:
            if event.at and event.at <= self._replayed_until:
                return
            self._heard_until = max(self._heard_until, event.at)
        if event.kind == "container" and event.workspace_id:
            with self._lock:
                self._take(event)

    def before_look(self) -> None:
        """What was heard so far is what the look may show; what comes later waits for the next."""
        with self._lock:
            for container_id, heard in self._heard.items():
                waiting = self._drained.setdefault(container_id, [])
                waiting.extend(heard)
                del waiting[:-_MOST_DEATHS]
            self._heard = {}

    def after_look(
        self, containers: Iterable[ObservedContainer], owned_ids: frozenset[str]
    ) -> None:
        known, saved = self._runs.known(), {}
        ours = {
            c.id: c
            for c in containers
            if c.id in owned_ids and c.inspected and c.labels.get(naming.LABEL_WORKSPACE)
        }
        told: list[tuple[ObservedContainer, End]] = []
        short = False
        for container in ours.values():
            if container.state == "created" or not container.started_at:
                continue
            run = known.get(container.id)
            if run is None:
                # From before there was a record: what it did until now is past.
                saved[container.id] = _first_run(container)
                self._drained.pop(container.id, None)
                continue
            verdict = self._judge(run, container)
            short = short or verdict.is_short
            told += [(container, end) for end in verdict.ends]
            if verdict.run is not None and verdict.run != run:
                saved[container.id] = verdict.run
        self._save(saved, told, gone=frozenset(known) - ours.keys())
        self._drained = {i: heard for i, heard in self._drained.items() if i in ours and heard}
        if short:
            self._look_again(PATIENCE)

    def _take(self, event: EngineEvent) -> None:
        container_id = event.container_id
        match event.action:
            case "kill" if event.signal not in _HARMLESS:
                self._killed.add(container_id)
            case "oom":
                self._out_of_memory.add(container_id)
            case "start":
                self._killed.discard(container_id)
                self._out_of_memory.discard(container_id)
            case "die":
                death = Death(
                    at=event.at,
                    code=event.exit_code,
                    oom=container_id in self._out_of_memory,
                    killed=container_id in self._killed,
                )
                heard = self._heard.setdefault(container_id, [])
                heard.append(_Heard(death=death, since=clock.monotonic()))
                del heard[:-_MOST_DEATHS]
                self._killed.discard(container_id)
                self._out_of_memory.discard(container_id)

    def _judge(self, run: Run, container: ObservedContainer) -> Verdict:
        now = clock.monotonic()
        heard = [h for h in self._drained.get(container.id, ()) if now - h.since < _STALE]
        waited = now - self._short_since.get(container.id, now)
        verdict = ends_since(
            run,
            tuple(sorted((h.death for h in heard), key=lambda death: death.at)),
            container,
            patient=waited < PATIENCE,
            engine_lost=self._engine_lost,
        )
        if verdict.is_short:
            self._short_since.setdefault(container.id, now)
        else:
            self._short_since.pop(container.id, None)
        left = {death.at for death in verdict.left}
        self._drained[container.id] = [h for h in heard if h.death.at in left]
        return verdict

    def _save(
        self,
        saved: dict[str, Run],
        told: list[tuple[ObservedContainer, End]],
        *,
        gone: frozenset[str],
    ) -> None:
        """All or nothing: an agent that dies here tells none of it twice."""
        if not (saved or told or gone):
            return
        with self._lock:
            heard_until = self._heard_until
            if told:
                self._engine_lost = False
        with self._database.transaction():
            for container, end in told:
                self._outbox.put(_row(container, end))
            self._runs.save(saved)
            self._runs.forget(gone)
            if heard_until:
                self._runs.save_heard(heard_until)


def _first_run(container: ObservedContainer) -> Run:
    return Run(restart_count=container.restart_count, started_at=start_of(container))


def _row(container: ObservedContainer, end: End) -> WorkspaceEvent:
    at = clock.timestamp() if end.at is None else _engine_time(end.at)
    known = end.exit is not None
    return WorkspaceEvent(
        seq=0,
        workspace_id=container.labels.get(naming.LABEL_WORKSPACE, ""),
        event=end.kind,
        cause=end.cause,
        at=at,
        exit=end.exit,
        count=end.count,
        last_at=at,
        health_output=redacted(container.health_output[-_LONGEST_OUTPUT:]) if known else "",
        last_lines=redacted(container.log_tail[-_LONGEST_OUTPUT:]) if known else "",
    )


def _engine_time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
