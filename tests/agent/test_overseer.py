"""The overseer cut off before and after every call it makes: one working agent, always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.errors import EngineUnavailable
from agent.overseer.decide import pause_seconds
from agent.overseer.order import Order
from agent.overseer.world import AGENT_NAME, NEXT_NAME, OVERSEER_NAME, PREVIOUS_NAME
from tests.agent.agents_model import LOGIN, Engine, Killed, oversee

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SWAP = [
    *("load", "create next", "start", "remove"),
    *("stop", "rename", "create current", "start", "remove"),
]


def a_host(image: str = "good", **settings: object) -> Engine:
    engine = Engine(**settings)  # type: ignore[arg-type]
    engine.add(AGENT_NAME, image)
    return engine


def agents(engine: Engine) -> list[str]:
    return [c.name for c in engine.containers.values() if c.works()]


def assert_one_working_agent(engine: Engine) -> None:
    assert agents(engine) == [AGENT_NAME], engine.containers
    assert engine.named(NEXT_NAME) is None
    assert engine.named(PREVIOUS_NAME) is None


def test_a_replacement_makes_these_calls_in_this_order() -> None:
    engine = a_host()
    old = engine.named(AGENT_NAME)
    assert oversee(engine) == [""]
    assert engine.calls == SWAP
    assert_one_working_agent(engine)
    new = engine.named(AGENT_NAME)
    assert new is not None
    assert new is not old
    assert new.made_by == "overseer"
    assert engine.logins == []


def test_an_image_that_names_its_registry_is_pulled_with_what_the_server_has_for_it() -> None:
    image = f"{LOGIN.server}/trailer/agent:2"
    engine = a_host()
    engine.images.add(image)
    engine.ids[image] = "id of good"
    oversee(engine, wanted=lambda: Order(image=image, number=7), most_pauses=1)
    assert engine.calls[0] == "pull"
    assert engine.logins[0] == LOGIN


def cut_at(number: int, when: str, how: Callable[[], None]) -> Callable[[str, str], None]:
    """Cut once, at the given changing call."""
    seen = {"calls": 0, "done": 0}

    def cut(call: str, moment: str) -> None:
        if moment == "before":
            seen["calls"] += 1
        if seen["calls"] == number and moment == when and not seen["done"]:
            seen["done"] = 1
            how()

    return cut


def die() -> None:
    raise Killed


BOUNDARIES = [(n, when) for n in range(1, len(SWAP) + 1) for when in ("before", "after")]


@pytest.mark.parametrize(("number", "when"), BOUNDARIES)
@pytest.mark.parametrize("daemon_too", [False, True], ids=["overseer", "daemon"])
@pytest.mark.parametrize("same", [True, False], ids=["started-again", "called-anew"])
def test_an_overseer_killed_at_any_boundary_leaves_one_working_agent(
    number: int, when: str, daemon_too: bool, same: bool
) -> None:
    """`same`: the engine starts it again. Otherwise it is gone for good and the agent, when one
    runs, calls another."""
    engine = a_host()
    engine.cut = cut_at(number, when, die)
    with pytest.raises(Killed):
        oversee(engine)
    if daemon_too:
        engine.daemon_restarts()
    if not same and not agents(engine):
        same = True
    oversee(engine, own_id="overseer" if same else "another")
    assert_one_working_agent(engine)


@pytest.mark.parametrize(("first", "moment"), BOUNDARIES)
def test_an_overseer_killed_again_while_it_recovers_leaves_one_working_agent(
    first: int, moment: str
) -> None:
    for second in range(1, 14):
        for when in ("before", "after"):
            engine = a_host()
            for number, at in ((first, moment), (second, when)):
                engine.cut = cut_at(number, at, die)
                try:
                    oversee(engine)
                except Killed:
                    engine.daemon_restarts()
            engine.cut = lambda call, at: None
            oversee(engine)
            assert_one_working_agent(engine)


@pytest.mark.parametrize(("number", "when"), BOUNDARIES)
def test_a_call_that_fails_or_whose_answer_is_lost_leaves_one_working_agent(
    number: int, when: str
) -> None:
    def fail() -> None:
        raise EngineUnavailable("The container engine did not answer in time.")

    engine = a_host()
    engine.cut = cut_at(number, when, fail)
    oversee(engine)
    assert_one_working_agent(engine)


@pytest.mark.parametrize(("number", "when"), BOUNDARIES)
def test_an_agent_that_ends_at_any_boundary_does_not_stop_its_replacement(
    number: int, when: str
) -> None:
    """The engine starts it again by its policy, in the middle of everything."""
    engine = a_host()

    def end() -> None:
        engine.daemon_restarts()

    engine.cut = cut_at(number, when, end)
    oversee(engine)
    assert_one_working_agent(engine)


@pytest.mark.parametrize("image", ["crash", "hang", "mute", "late", "absent"])
def test_a_broken_image_never_takes_over_and_is_tried_for_ever(image: str) -> None:
    engine = a_host()
    old = engine.named(AGENT_NAME)
    pauses: list[float] = []
    told = oversee(engine, wanted=lambda: image, pauses=pauses, most_pauses=12)
    assert_one_working_agent(engine)
    assert engine.named(AGENT_NAME) is old
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]
    assert len(told) == 13
    assert all(told)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("crash", "The new agent (crash) ended with exit code 3."),
        ("hang", "The new agent (hang) is not healthy after 120 seconds."),
    ],
)
def test_a_failure_says_how_the_new_agent_ended_and_its_last_lines(image: str, said: str) -> None:
    told = oversee(a_host(), wanted=lambda: image, most_pauses=1)
    assert told[0] == f"{said} Its last lines: first line\nlast line"


@pytest.mark.parametrize("image", ["crash", "hang", "mute", "absent"])
def test_the_old_agent_works_all_the_while_a_broken_image_is_tried(image: str) -> None:
    engine = a_host()

    def look(call: str, when: str) -> None:
        assert agents(engine) == [AGENT_NAME]

    engine.cut = look
    oversee(engine, wanted=lambda: image, most_pauses=4)
    assert "stop" not in engine.calls


@pytest.mark.parametrize("image", ["crash", "hang", "mute", "late", "absent"])
@pytest.mark.parametrize(
    ("number", "when"), [(n, w) for n in range(1, 16) for w in ("before", "after")]
)
def test_an_overseer_killed_over_a_broken_image_leaves_the_old_agent(
    image: str, number: int, when: str
) -> None:
    engine = a_host()
    engine.cut = cut_at(number, when, die)
    try:
        oversee(engine, wanted=lambda: image)
    except Killed:
        engine.daemon_restarts()
    engine.cut = lambda call, at: None
    oversee(engine, wanted=lambda: image)
    assert_one_working_agent(engine)


@pytest.mark.parametrize("image", ["good", "late", "crash"])
def test_a_full_disk_keeps_nobody_from_going_on_or_back(image: str) -> None:
    engine = a_host()
    told = oversee(engine, wanted=lambda: image, disk_is_full=True)
    assert_one_working_agent(engine)
    assert told


def test_another_order_of_the_server_ends_the_pause() -> None:
    engine = a_host()
    orders = iter(["crash", "crash", "crash", "good"])
    pauses: list[float] = []
    last = "crash"

    def wanted() -> str:
        nonlocal last
        last = next(orders, last)
        return last

    oversee(engine, wanted=wanted, pauses=pauses)
    assert_one_working_agent(engine)
    assert pauses == [5.0]


def test_an_order_that_is_taken_back_ends_the_overseer() -> None:
    engine = Engine()
    old = engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    # Asked for at the pull, and before each act after the failure: the pause is the third.
    orders = iter([Order(image="crash", number=7)] * 3)
    pauses: list[float] = []
    told = oversee(engine, wanted=lambda: next(orders, Order()), pauses=pauses)
    assert engine.named(AGENT_NAME) is old
    assert told[-1] == ""
    # Not the whole pause long, and nobody says that it was fulfilled.
    assert pauses == [5.0]
    assert engine.answered == 0


def test_an_order_of_a_name_that_means_another_image_now_replaces_the_agent() -> None:
    engine = Engine()
    old = engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    engine.pushed["good"] = "id of a newer one"
    oversee(engine, wanted=lambda: Order(image="good", number=7))
    new = engine.named(AGENT_NAME)
    assert new is not None
    assert new is not old
    assert new.image_id == "id of a newer one"
    assert engine.answered == 7
    assert_one_working_agent(engine)


def test_an_order_of_the_very_image_that_runs_is_fulfilled_without_a_replacement() -> None:
    engine = Engine()
    old = engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    engine.pushed["good"] = "id of good"
    assert oversee(engine, wanted=lambda: Order(image="good", number=7)) == [""]
    assert engine.named(AGENT_NAME) is old
    assert engine.calls == ["load"]
    assert engine.answered == 7


def test_an_order_is_not_fulfilled_by_an_image_that_nobody_could_ask_for() -> None:
    engine = Engine(is_registry_away=True)
    engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    engine.pushed["good"] = "id of a newer one"
    told = oversee(engine, wanted=lambda: Order(image="good", number=7), most_pauses=1)
    assert "could not be fetched" in told[0]
    assert "no such archive" in told[0]
    assert engine.answered == 0


def test_an_order_of_an_image_built_on_the_host_replaces_the_agent() -> None:
    engine = Engine(is_registry_away=True)
    engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    engine.ids["good"] = "id of a newer one"
    assert oversee(engine, wanted=lambda: Order(image="good", number=7)) == [""]
    assert engine.answered == 7
    assert_one_working_agent(engine)


def test_an_overseer_that_forgot_its_order_does_not_claim_it() -> None:
    """Killed after the swap: it cannot know that nothing newer was ordered since."""
    engine = Engine()
    engine.add(AGENT_NAME, "good", made_by="an earlier overseer")
    engine.pushed["good"] = "id of a newer one"
    engine.cut = cut_at(len(SWAP), "after", die)
    with pytest.raises(Killed):
        oversee(engine, wanted=lambda: Order(image="good", number=7))
    oversee(engine, wanted=lambda: Order(image="good", number=8))
    assert engine.answered == 0
    oversee(engine, own_id="another", wanted=lambda: Order(image="good", number=8))
    assert engine.answered == 8
    assert_one_working_agent(engine)


def test_a_server_that_cannot_be_asked_takes_no_order_back() -> None:
    engine = a_host()
    pauses: list[float] = []
    orders: Iterator[str | None] = iter(["crash"])
    oversee(engine, wanted=lambda: next(orders, None), pauses=pauses, most_pauses=1)
    assert pauses == [10.0]


def test_an_agent_that_a_person_stopped_meanwhile_stays_stopped() -> None:
    engine = a_host()

    def wanted() -> str:
        found = engine.named(AGENT_NAME)
        assert found is not None
        if "start" in engine.calls:
            found.running, found.stopped_by_call = False, True
        return "hang"

    oversee(engine, wanted=wanted)
    assert agents(engine) == []
    found = engine.named(AGENT_NAME)
    assert found is not None
    assert found.stopped_by_call


def test_without_any_agent_there_is_nothing_to_do() -> None:
    engine = Engine()
    oversee(engine)
    assert engine.calls == []


def test_pauses_double_up_to_an_hour() -> None:
    assert [pause_seconds(n) for n in (1, 2, 3, 9, 10, 1000)] == [10, 20, 40, 2560, 3600, 3600]


def test_two_overseers_cannot_be_called() -> None:
    engine = a_host()
    assert engine.spawn("c0")
    assert not engine.spawn("c0")
    assert engine.named(OVERSEER_NAME) is not None
