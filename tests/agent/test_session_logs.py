"""Log sessions: run after run, only our containers, and a slow reader that harms nobody."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.apply.ops import Ops
from agent.protocol.sessions import ALL_LINES, WINDOW
from agent.steps import Ref, RemoveContainer
from tests.agent.bench import NoWork
from tests.agent.session_scene import SessionScene
from tests.ground.wait import always, eventually


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[SessionScene]:
    scene = SessionScene(tmp_path)
    yield scene
    scene.stop()


def test_the_newest_lines_come_first_and_then_each_new_one(scene: SessionScene) -> None:
    for number in range(5):
        scene.runtime.say(scene.container, f"line {number}\n")
    stream = scene.server.open("logs", tail=2)
    stream.sees("line 3\nline 4\n")
    assert stream.opened().container == scene.container
    scene.runtime.say(scene.container, "line 5\n")
    stream.sees("line 5\n")
    assert stream.output == b"line 3\nline 4\nline 5\n"


def test_a_restarted_and_a_replaced_container_are_followed_without_doubles(
    scene: SessionScene,
) -> None:
    scene.runtime.say(scene.container, "one\n")
    stream = scene.server.open("logs", tail=ALL_LINES)
    stream.sees("one\n")
    scene.runtime.stop_container(scene.container, timeout=1)
    always(lambda: stream.end is None, 0.2, "a stopped container ended the session")
    second = scene.replace_container()
    scene.runtime.say(second, "two\n")
    stream.sees("two\n")
    assert [words.container for words in stream.words][1:] == [second]
    assert stream.output == b"one\ntwo\n"


def test_while_the_old_container_stands_still_the_new_one_is_shown(scene: SessionScene) -> None:
    """A database that does not come up under its new definition can be looked into."""
    new = scene.add_container("trailer-web-next")
    scene.runtime.say(new, "migrating\n")
    assert scene.server.open("logs", tail=1).opened().container == scene.container
    scene.runtime.stop_container(scene.container, timeout=1)
    stream = scene.server.open("logs", tail=1)
    stream.sees("migrating\n")
    assert stream.opened().container == new


def test_one_answer_ends_with_the_log(scene: SessionScene) -> None:
    scene.runtime.say(scene.container, "only\n")
    stream = scene.server.open("logs", follow=False)
    assert stream.ended().error == ""
    assert stream.output == b"only\n"


def test_the_log_of_the_container_before_is_kept_until_the_workspace_goes(
    scene: SessionScene,
) -> None:
    missing = scene.server.open("logs", previous=True).ended()
    assert missing.code == "not_there"
    scene.runtime.say(scene.container, "2026-11-16T06:00:00.1Z last words\n")
    scene.previous.keep("w-web", scene.container)
    plain = scene.server.open("logs", previous=True)
    assert plain.ended().error == ""
    assert plain.output == b"last words\n"
    stamped = scene.server.open("logs", previous=True, timestamps=True)
    assert stamped.ended().error == ""
    assert stamped.output == b"2026-11-16T06:00:00.1Z last words\n"
    scene.previous.forget("w-web")
    assert scene.server.open("logs", previous=True).ended().code == "not_there"


def test_a_replacement_that_never_came_up_does_not_pass_for_the_container_before(
    scene: SessionScene,
) -> None:
    failed = scene.add_container("trailer-web-next")
    scene.runtime.say(failed, "2026-11-16T06:00:00.1Z no such file\n")
    scene.previous.keep("w-web", failed)
    assert scene.server.open("logs", previous=True).ended().code == "not_there"


def test_a_replaced_container_leaves_its_log_and_a_deleted_workspace_none(
    scene: SessionScene,
) -> None:
    ops = Ops(scene.runtime, scene.journal, NoWork(scene.runtime), scene.previous)

    def remove(*, ordered: bool) -> None:
        scene.runtime.say(scene.container, "2026-11-16T06:00:00.1Z last words\n")
        step = RemoveContainer(
            key="workspace:w-web",
            name="web",
            cause="test",
            container=Ref(id=scene.container),
            with_volumes=ordered,
        )
        ops.perform(step, lambda ref: ref.id, lambda: True)

    remove(ordered=False)
    kept = scene.previous.read("w-web", tail=None, timestamps=False)
    assert kept == b"last words\n"
    scene.container = scene.add_container()
    scene.runtime.failing["container_logs"] = 1
    remove(ordered=False)
    assert scene.runtime.containers == {}, "a log that cannot be read keeps the container"
    scene.container = scene.add_container()
    remove(ordered=True)
    assert scene.previous.read("w-web", tail=None, timestamps=False) is None


@pytest.mark.parametrize("workspace_id", ["w-other", "../w-web", ""])
def test_a_workspace_without_a_container_is_told_so(
    scene: SessionScene, workspace_id: str
) -> None:
    end = scene.server.open("logs", workspace_id=workspace_id).ended()
    assert (end.code, "no container" in end.error) == ("not_there", True)


def test_a_foreign_container_with_our_label_is_never_read(scene: SessionScene) -> None:
    scene.runtime.containers.clear()
    foreign = scene.add_container(owned=False)
    scene.runtime.say(foreign, "secret\n")
    end = scene.server.open("logs").ended()
    assert end.code == "not_there"


def test_a_reader_that_lags_stalls_its_own_log_only_and_memory_stays_bounded(
    scene: SessionScene,
) -> None:
    slow = scene.server.open("logs", greedy=False, tail=0)
    quick = scene.server.open("logs", tail=0)
    slow.opened()
    quick.opened()
    text = "x" * 1023 + "\n"
    said = 0

    def is_up_to_date() -> bool:
        return len(quick.output) == said

    for _ in range(20):
        for _ in range(100):
            scene.runtime.say(scene.container, text)
            said += len(text)
        eventually(is_up_to_date, 5, "the quick one lags")
    assert len(quick.output) > 7 * WINDOW
    assert len(slow.output) <= WINDOW
    assert scene.server.wire.queued_bytes() <= WINDOW
    slow.close()
    eventually(lambda: scene.sessions.count() == 1, 5, "the slow session stays")


def test_streams_take_turns_on_a_socket_that_is_too_narrow(scene: SessionScene) -> None:
    first, second = scene.server.open("logs"), scene.server.open("logs")
    first.opened()
    second.opened()
    scene.server.flows.clear()
    scene.runtime.say(scene.container, "y" * 200_000 + "\n")
    eventually(lambda: scene.server.wire.queued_bytes() > 300_000, 5, "nothing waits")
    scene.server.order.clear()
    scene.server.flows.set()
    eventually(lambda: len(scene.server.order) >= 10, 5, "nothing is sent")
    turns = scene.server.order[1:9]
    assert all(a != b for a, b in itertools.pairwise(turns)), turns
