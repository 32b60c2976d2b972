"""When a new container counts as up, and when it is given up."""

import pytest

from agent.apply.trial import Trial, Verdict
from agent.observed import ObservedContainer

WAITING, UP = Verdict(), Verdict(is_up=True)


def seen(
    state: str = "running", *, health: str = "", restarts: int = 0, started: str = "a"
) -> ObservedContainer:
    return ObservedContainer(
        id="c1",
        name="trailer-web-next",
        state=state,
        health=health,
        restart_count=restarts,
        started_at=started,
        exit_code=3,
    )


def test_without_a_health_check_it_must_stay_up_for_ten_seconds() -> None:
    trial = Trial(began=100.0, timeout=60.0, steady=10.0)
    verdicts = [trial.judge(seen(), now=now) for now in (100.0, 105.0, 109.9, 110.0)]
    assert verdicts == [WAITING, WAITING, WAITING, UP]


def test_a_second_start_begins_the_ten_seconds_again() -> None:
    trial = Trial(began=100.0, timeout=60.0, steady=10.0)
    trial.judge(seen(), now=100.0)
    assert trial.judge(seen(restarts=1, started="b"), now=109.0) == WAITING
    assert trial.judge(seen(restarts=1, started="b"), now=118.0) == WAITING
    assert trial.judge(seen(restarts=1, started="b"), now=119.0) == UP


def test_one_that_ended_once_may_still_become_healthy() -> None:
    """Between two starts the engine says unhealthy, without having asked."""
    trial = Trial(began=100.0, timeout=30.0)
    assert trial.judge(seen("restarting", health="unhealthy"), now=100.5) == WAITING
    assert trial.judge(seen(restarts=1, health="starting"), now=101.0) == WAITING
    assert trial.judge(seen(restarts=1, health="healthy"), now=102.0) == UP


@pytest.mark.parametrize("health", ["", "starting"])
def test_one_that_keeps_ending_is_given_up_soon(health: str) -> None:
    trial = Trial(began=100.0, timeout=60.0, steady=10.0)
    trial.judge(seen(health=health), now=100.0)
    ended = "unhealthy" if health else ""
    assert trial.judge(seen("restarting", restarts=5, health=ended), now=103.0) == WAITING
    problem = trial.judge(seen("restarting", restarts=6, health=ended), now=106.4).problem
    assert problem == "The new container keeps ending, 6 times so far."


@pytest.mark.parametrize("steady", [None, 10.0])
def test_one_that_ended_is_given_up_at_once(steady: float | None) -> None:
    trial = Trial(began=100.0, timeout=60.0, steady=steady)
    assert trial.judge(seen("exited"), now=100.1).problem == (
        "The new container ended with code 3."
    )


@pytest.mark.parametrize("steady", [None, 10.0])
def test_a_health_check_has_its_own_time(steady: float | None) -> None:
    trial = Trial(began=100.0, timeout=30.0, steady=steady)
    assert trial.judge(seen(health="starting"), now=129.0) == WAITING
    assert trial.judge(seen(health="healthy"), now=129.0) == UP
    late = trial.judge(seen(health="starting"), now=130.0)
    assert late.problem == "The new container was not healthy within 30 seconds."
    sick = trial.judge(seen(health="unhealthy"), now=101.0)
    assert sick.problem == "The new container is unhealthy."


def test_one_that_is_never_up_for_long_enough_is_given_up_in_the_end() -> None:
    trial = Trial(began=100.0, timeout=30.0, steady=10.0)
    for now in range(100, 140):
        assert trial.judge(seen("restarting", restarts=1), now=float(now)) == WAITING
    late = trial.judge(seen("restarting", restarts=1), now=140.0)
    assert late.problem == "The new container did not stay up for 10 seconds."
