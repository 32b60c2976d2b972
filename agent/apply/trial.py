"""Whether a new container has come up: the judgement on what inspect says of it, look by look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent.protocol.counting import counted

if TYPE_CHECKING:
    from agent.observed import ObservedContainer

# Some programs end until what they need is there. The engine waits twice as long before each
# further start, so that these take some seven seconds.
_MOST_RESTARTS: Final = 5


@dataclass(frozen=True)
class Verdict:
    """Neither means: not known yet."""

    is_up: bool = False
    problem: str = ""


@dataclass
class Trial:
    """Up means healthy, or without a health check: running for `steady` seconds on end. With
    `steady` None only a health check counts."""

    began: float
    timeout: float
    steady: float | None = None
    _start: tuple[str, int] | None = None
    _running_since: float = field(default=0.0)

    def judge(self, container: ObservedContainer, *, now: float) -> Verdict:
        if container.health == "healthy":
            return Verdict(is_up=True)
        # Between two starts the engine calls it unhealthy without having asked.
        if container.health == "unhealthy" and container.state == "running":
            return Verdict(problem="The new container is unhealthy.")
        if container.state not in {"running", "restarting"}:
            return Verdict(problem=f"The new container ended with code {container.exit_code}.")
        if container.restart_count > _MOST_RESTARTS:
            times = f"{container.restart_count} times"
            return Verdict(problem=f"The new container keeps ending, {times} so far.")
        if self.steady is None or container.health:
            if now - self.began >= self.timeout:
                seconds = counted(self.timeout, "second")
                return Verdict(problem=f"The new container was not healthy within {seconds}.")
            return Verdict()
        return self._judge_unchecked(container, self.steady, now=now)

    def _judge_unchecked(
        self, container: ObservedContainer, steady: float, *, now: float
    ) -> Verdict:
        start = (container.started_at, container.restart_count)
        if start != self._start or container.state != "running":
            self._start, self._running_since = start, now
        if container.state == "running" and now - self._running_since >= steady:
            return Verdict(is_up=True)
        if now - self.began >= self.timeout + steady:
            return Verdict(
                problem=f"The new container did not stay up for {counted(steady, 'second')}."
            )
        return Verdict()
