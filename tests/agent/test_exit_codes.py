"""The exit code of a terminal, which a busy engine knows seconds after the end of its output."""

from __future__ import annotations

from typing import Any

import pytest

from agent import clock
from agent.runtime.docker_sessions import DockerSessions


class SlowEngine:
    """Says that a process runs until `seconds` have passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.ends_at = 0.0, seconds
        monkeypatch.setattr(clock, "monotonic", lambda: self.now)
        monkeypatch.setattr(clock, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, ask: Any) -> dict[str, Any]:
        is_over = self.now >= self.ends_at
        state = {"Running": not is_over, "ExitCode": 7 if is_over else None}
        return {"Id": "c", "State": state, **state}


def exit_codes(engine: SlowEngine) -> tuple[int | None, int | None]:
    """Of a process in a container, and of a container."""
    sessions: Any = DockerSessions()
    sessions._engine = engine
    return sessions._exec_exit("e"), sessions._container_exit("c")


@pytest.mark.parametrize("seconds", [0.0, 0.5, 8.0])
def test_a_late_exit_code_is_waited_for(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    assert exit_codes(SlowEngine(monkeypatch, seconds)) == (7, 7)


def test_a_process_that_never_ends_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = SlowEngine(monkeypatch, float("inf"))
    assert exit_codes(engine) == (None, None)
    assert engine.now < 30
