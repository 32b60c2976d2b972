"""Which ends of a container are new, from the engine's counter and what its events say. Pure.

The counter of restarts is the truth about how many there were, events say how each one went. An
event may come a little after the look that saw its restart, or before it; and those that an engine
forgot are told as one entry whose cause nobody knows.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.engine_requests import RESTART_POLICY
from agent.protocol.report import ContainerExit

if TYPE_CHECKING:
    from agent.observed import ObservedContainer

CRASHED: Final = "crashed"
RESTARTED: Final = "restarted"
BY_ITSELF: Final = "ended by itself"
BY_HAND: Final = "restarted outside Trailer"
WITH_ENGINE: Final = "restarted with the engine"
UNKNOWN: Final = "why is not known"
# A restart is counted when the process ends, and begins after a pause.
WAITING: Final = "restarting"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A container as it was when its ends were told last. `started_at` is empty when this agent
    started it since, and WAITING while the engine was about to; `ended_at` is the engine's time of
    the newest end that is told."""

    restart_count: int
    started_at: str
    ended_at: int = 0


@dataclass(frozen=True, kw_only=True)
class Death:
    """One event of a main process's end. `killed`: somebody asked the engine for it."""

    at: int
    code: int | None
    oom: bool = False
    killed: bool = False


@dataclass(frozen=True, kw_only=True)
class End:
    """What is told; `at` is None when nobody knows."""

    kind: str
    cause: str
    at: int | None = None
    exit: ContainerExit | None = None
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`is_short`: the engine counted more restarts than were heard of, so far."""

    ends: tuple[End, ...] = ()
    left: tuple[Death, ...] = ()
    run: Run | None = None
    is_short: bool = False


def ends_since(
    run: Run,
    deaths: tuple[Death, ...],
    container: ObservedContainer,
    *,
    patient: bool,
    engine_lost: bool = False,
) -> Verdict:
    """`patient`: what is missing may still come. `engine_lost`: the stream of events broke off
    since the last look, as it does when the engine is started anew."""
    deaths = tuple(death for death in deaths if death.at > run.ended_at)
    count = container.restart_count
    was_reset = _was_reset(run, container)
    expected = count if was_reset else count - run.restart_count
    alone = tuple(death for death in deaths if not death.killed)
    killed = tuple(death for death in deaths if death.killed)
    if not was_reset and len(alone) < expected:
        # Killed through the engine, which started it again all the same.
        borrowed = expected - len(alone)
        alone, killed = tuple(sorted((*alone, *killed[:borrowed]), key=_at)), killed[borrowed:]
    told, left = _split(run, alone, container, expected=expected, was_reset=was_reset)
    missing = max(0, expected - len(told))
    if was_reset and not killed and len(told) <= count:
        # The restart that set the counter back was not heard of either.
        missing += 1
    if missing and patient:
        return Verdict(left=deaths, is_short=True)
    ends = [_end(death) for death in told]
    if was_reset and run.started_at:
        cause = WITH_ENGINE if engine_lost else BY_HAND
        ends += [_end(death, cause=cause) for death in killed]
    ends.sort(key=lambda end: end.at or 0)
    if missing:
        ends.append(End(kind=RESTARTED, cause=UNKNOWN, count=missing))
    newest = max((death.at for death in (*told, *killed)), default=run.ended_at)
    now = Run(restart_count=count, started_at=start_of(container), ended_at=newest)
    return Verdict(ends=tuple(ends), left=left, run=now)


def _was_reset(run: Run, container: ObservedContainer) -> bool:
    """Somebody else than this agent, or than the engine after an end, started it."""
    if not run.started_at or container.restart_count < run.restart_count:
        return bool(run.started_at)
    same = container.restart_count == run.restart_count
    if not same or container.state not in {"running", "paused"}:
        return False
    return run.started_at not in {WAITING, container.started_at}


def start_of(container: ObservedContainer) -> str:
    return WAITING if container.state == "restarting" else container.started_at


def _split(
    run: Run,
    alone: tuple[Death, ...],
    container: ObservedContainer,
    *,
    expected: int,
    was_reset: bool,
) -> tuple[tuple[Death, ...], tuple[Death, ...]]:
    """(what is told now, what waits for the look that shows its restart)."""
    if was_reset:
        return alone, ()
    if not run.started_at:
        # Before it there may be the end that our own stop made.
        return (alone[-expected:], ()) if expected > 0 else ((), ())
    if container.state == "exited":
        # Without a restart it was stopped, unless nobody was to start it again.
        kept = alone if container.restart_policy not in ("", RESTART_POLICY) else alone[:expected]
        return kept, ()
    return alone[:expected], alone[expected:]


def _end(death: Death, *, cause: str = BY_ITSELF) -> End:
    clean = death.code == 0 and not death.oom
    kind = RESTARTED if clean or cause != BY_ITSELF else CRASHED
    ended = ContainerExit(code=death.code, signal=signal_of(death.code), oom=death.oom)
    return End(kind=kind, cause=cause, at=death.at, exit=ended)


def signal_of(code: int | None) -> str:
    """Of an exit code made of a signal's number (128 + n), its name; else empty."""
    try:
        return signal.Signals(code - 128).name if code is not None and code > 128 else ""
    except ValueError:
        return ""


def exit_of(container: ObservedContainer) -> ContainerExit:
    """Of one that stands still."""
    code = container.exit_code
    return ContainerExit(code=code, signal=signal_of(code), oom=container.oom_killed)


def _at(death: Death) -> int:
    return death.at
