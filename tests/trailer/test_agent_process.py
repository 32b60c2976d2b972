"""How soon an embedded agent that died is started again."""

from __future__ import annotations

from trailer.standalone.agent_process import failures_in_a_row, restart_delay


def test_an_agent_that_cannot_start_is_tried_ever_more_seldom() -> None:
    failures, delays = 0, []
    for _ in range(7):
        failures = failures_in_a_row(failures, lived=0.5)
        delays.append(restart_delay(failures))
    assert delays == [1, 2, 5, 10, 10, 10, 10]


def test_an_agent_that_worked_and_died_is_back_at_once_however_often_that_happened() -> None:
    failures = 0
    for _ in range(9):
        failures = failures_in_a_row(failures, lived=60)
        assert restart_delay(failures) == 1
