"""Terminals: ended with their socket, held for a moment after a cut, never left behind."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.protocol.sessions import WINDOW
from agent.runtime.session_port import ExecRecord
from tests.agent.session_scene import SessionScene, Stream
from tests.ground.wait import always, eventually

Make = Callable[..., SessionScene]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SessionScene] = []

    def start(**limits: float) -> SessionScene:
        made.append(SessionScene(tmp_path, **limits))
        return made[-1]

    yield start
    for scene in made:
        scene.stop()


@pytest.fixture
def scene(make: Make) -> SessionScene:
    return make()


def test_bytes_go_both_ways_and_the_exit_code_comes_last(scene: SessionScene) -> None:
    stream = scene.server.open("exec", command=("sh", "-c", "x"), size=(100, 30))
    stream.opened()
    stream.type("hello")
    stream.sees("hello")
    stream.resize(132, 43)
    eventually(lambda: scene.terminal().sizes == [(100, 30), (132, 43)], 5, "no size")
    assert scene.terminal().command == ("sh", "-c", "x")
    stream.type("exit 3")
    assert stream.ended().exit == 3
    eventually(lambda: not scene.files.all() and not scene.sessions.count(), 5, "not tidied")


def test_a_clean_close_ends_the_process_at_once(scene: SessionScene) -> None:
    stream = scene.server.open("exec")
    stream.opened()
    assert len(scene.files.all()) == 1
    stream.close()
    eventually(lambda: not scene.runtime.running_terminals(), 2, "the process lives on")
    eventually(lambda: not scene.files.all(), 2, "the record stays")


def test_after_a_cut_the_same_user_goes_on_and_sees_what_was_said(scene: SessionScene) -> None:
    stream = scene.server.open("exec")
    session = stream.opened().session
    stream.type("first ")
    stream.sees("first ")
    server = scene.reconnect()
    terminal = scene.terminal()
    terminal.write(b"meanwhile ")
    eventually(lambda: terminal.produced == len(b"first meanwhile "), 5, "nobody reads on")
    again = server.open("exec", resume=session)
    again.sees("meanwhile ")
    assert again.opened().replay == len(b"first meanwhile ")
    assert again.output == b"first meanwhile "
    again.type("second")
    again.sees("second")
    assert not terminal.ended


def test_a_new_socket_takes_the_terminal_over(scene: SessionScene) -> None:
    stream = scene.server.open("exec")
    session = stream.opened().session
    again = scene.server.open("exec", resume=session)
    again.opened()
    assert "elsewhere" in stream.ended().error
    again.type("mine")
    again.sees("mine")
    assert len(scene.runtime.running_terminals()) == 1


@pytest.mark.parametrize("other", [{"user": "mallory"}, {"workspace_id": "w-other"}])
def test_nobody_else_and_nowhere_else_gets_a_held_terminal(
    scene: SessionScene, other: dict[str, Any]
) -> None:
    session = scene.server.open("exec").opened().session
    end = scene.server.open("exec", resume=session, **other).ended()
    assert end.code == "not_there"


def test_a_terminal_nobody_comes_back_to_is_ended(make: Make) -> None:
    scene = make(grace=0.3)
    stream = scene.server.open("exec")
    session = stream.opened().session
    stream.close(hold=True)
    always(scene.runtime.running_terminals, 0.15, "ended too early")
    eventually(lambda: not scene.runtime.running_terminals(), 3, "never ended")
    eventually(lambda: not scene.files.all(), 2, "the record stays")
    assert scene.server.open("exec", resume=session).ended().code == "not_there"


def test_a_reader_that_lags_holds_up_the_program_and_not_the_agent(scene: SessionScene) -> None:
    stream = scene.server.open("exec", greedy=False)
    stream.opened()
    stream.type("flood")
    eventually(lambda: len(stream.output) > WINDOW - 2 * 4096, 5, "no flood")
    terminal = scene.terminal()
    produced = terminal.produced
    always(lambda: terminal.produced <= produced + 4096, 0.3, "the program is read on")
    other = scene.server.open("exec")
    other.opened()
    other.type("quick")
    other.sees("quick")
    stream.close()
    eventually(lambda: terminal.ended, 3, "the flood goes on")


def test_idle_and_old_terminals_are_closed_with_a_sentence(make: Make) -> None:
    scene = make(idle=0.5)
    stream = scene.server.open("exec")
    stream.opened()
    assert "Nothing happened" in stream.ended().error
    eventually(lambda: not scene.runtime.running_terminals(), 3, "the process lives on")
    scene.stop()
    old = make(longest=0.5)
    end = old.server.open("exec").ended()
    assert "at most" in end.error


def test_a_workspace_and_a_user_have_so_many_sessions_and_no_more(scene: SessionScene) -> None:
    streams = [scene.server.open("exec", user=f"u{number}") for number in range(10)]
    for stream in streams:
        stream.opened()
    full = scene.server.open("attach", user="late").ended()
    assert (full.code, "10 open terminals" in full.error) == ("busy", True)
    streams[0].close()
    eventually(lambda: scene.sessions.count() == 9, 5, "no room was made")
    scene.server.open("exec", user="late").opened()
    logs = [scene.server.open("logs", user="olga") for _ in range(20)]
    for stream in logs:
        stream.opened()
    many = scene.server.open("logs", user="olga").ended()
    assert many.code == "busy"


def test_a_kind_that_this_agent_does_not_know_is_refused_by_name(scene: SessionScene) -> None:
    end = scene.server.open("hologram").ended()
    assert (end.code, "hologram" in end.error) == ("unsupported", True)


def test_a_stopped_workspace_has_no_terminal(scene: SessionScene) -> None:
    scene.runtime.stop_container(scene.container, timeout=1)
    for kind in ("exec", "attach"):
        end = scene.server.open(kind).ended()
        assert (end.code, "not running" in end.error) == ("busy", True)


def test_an_attached_terminal_is_left_and_its_process_lives_on(scene: SessionScene) -> None:
    stream = scene.server.open("attach", size=(80, 24))
    assert stream.opened().container == scene.container
    stream.type("hello")
    stream.sees("hello")
    stream.close()
    eventually(lambda: scene.terminal().closed, 3, "the connection stays")
    assert not scene.terminal().ended
    again = scene.server.open("attach")
    again.opened()
    again.type("exit 5")
    assert again.ended().exit == 5


def test_what_a_killed_agent_left_is_ended_at_the_next_start(make: Make) -> None:
    scene = make()
    scene.stop()
    left = ExecRecord(container_id="c", exec_id="e", inner_pid=7)
    scene.files.save("s1", left)
    again = make()
    eventually(lambda: left in again.runtime.ended_execs, 3, "the process lives on")
    eventually(lambda: not again.files.all(), 3, "the record stays")


def test_a_record_stays_while_the_engine_is_away(make: Make) -> None:
    scene = make()
    stream: Stream = scene.server.open("exec")
    stream.opened()
    scene.runtime.failing["end_exec"] = 2
    stream.close()
    eventually(lambda: not scene.runtime.failing["end_exec"], 3, "never tried")
    assert len(scene.files.all()) == 1


def test_a_stopping_agent_takes_its_terminals_and_threads_along(make: Make) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    scene = make()
    streams = [scene.server.open(kind) for kind in ("exec", "logs", "attach")]
    for stream in streams:
        stream.opened()
    scene.stop()
    assert not [
        t for t in scene.runtime.running_terminals() if t.record.exec_id.startswith("exec")
    ]
    eventually(
        lambda: {thread.ident for thread in threading.enumerate()} <= before,
        5,
        f"threads stay: {[thread.name for thread in threading.enumerate()]}",
    )
