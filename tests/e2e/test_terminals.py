"""Terminals that are cut, flooded, left and worn: nothing of them stays in the container."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e.scenario import User
from tests.e2e.sockets import SessionSocket
from tests.e2e.terminal_scene import agent_of, commands, gone, made_user, opener
from tests.ground.size import TERMINALS
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer


@pytest.fixture
def user(running_trailer: RunningTrailer) -> User:
    return User(running_trailer)


def test_nothing_stays_of_terminals_that_are_flooded_cut_left_and_worn(
    user: User, engine_client: docker.DockerClient
) -> None:
    a_tab_that_does_not_read_grows_nobody_and_slows_nobody(user, engine_client)
    a_cut_terminal_waits_for_its_user_and_for_nobody_else(user, engine_client)
    many_terminals_leave_no_process_no_exec_no_thread_and_no_file(user, engine_client)


def a_tab_that_does_not_read_grows_nobody_and_slows_nobody(
    user: User, engine_client: docker.DockerClient
) -> None:
    trailer = user.trailer
    workspace = user.running("flooded")
    processes = [*trailer.processes(), agent_of(trailer)]
    with ExitStack() as stack:
        open_socket = opener(trailer, workspace, stack)
        shell = open_socket("exec")
        shell.hears("session")
        flood = open_socket("exec", cmd="yes")
        eventually(lambda: len(flood.output) > 100_000, 15, "no flood")
        flood.pause()
        before = [process.memory_info().rss for process in processes]

        def grown() -> int:
            return max(
                process.memory_info().rss - size
                for process, size in zip(processes, before, strict=True)
            )

        always(lambda: grown() < 32 * 1024**2, 3, "a slow tab grows a process")
        asked = time.monotonic()
        shell.type("echo quick-$((40+2))\n")
        shell.sees("quick-42")
        assert time.monotonic() - asked < 2
        seen = len(flood.output)
        flood.go_on()
        eventually(lambda: len(flood.output) > seen + 3_000_000, 15, "it never goes on")
        # Its user can still stop it, however much is on its way.
        flood.type("\x03")
        assert flood.hears("exit") == 130
        gone(engine_client, "flooded", "yes")


def a_cut_terminal_waits_for_its_user_and_for_nobody_else(
    user: User, engine_client: docker.DockerClient
) -> None:
    trailer = user.trailer
    workspace = user.running("held")
    stranger = made_user(user, "mallory")
    with ExitStack() as stack:
        open_socket = opener(trailer, workspace, stack)
        first = open_socket("exec")
        session = first.hears("session")
        first.type("answer=42; echo kept-$((40+2))\n")
        first.sees("kept-42")
        first.cut()
        second = open_socket("exec", session=session)
        assert second.hears("session") == session
        assert second.hears("replay") > 0
        second.sees("kept-42")
        second.type("echo again-$answer\n")
        second.sees("again-42")

        # Somebody else gets nothing of it, and a reload takes the terminal over.
        other = open_socket("exec", token=stranger, session=session)
        assert other.ends() == 4404
        third = open_socket("exec", session=session)
        third.sees("again-42")
        assert "elsewhere" in second.hears("error")
        third.type("sleep 2001\n")
        eventually(lambda: "sleep 2001" in commands(engine_client, "held"), 10, "no sleep")
        left = time.monotonic()
        third.close(1001)
        always(lambda: "sleep 2001" in commands(engine_client, "held"), 2, "ended too early")
        gone(engine_client, "held", "sleep 2001", 10 - (time.monotonic() - left))

        # An agent that is killed ends the terminals it left when it is back.
        fourth = open_socket("exec")
        fourth.hears("session")
        fourth.type("sleep 2002\n")
        eventually(lambda: "sleep 2002" in commands(engine_client, "held"), 10, "no sleep")
        agent_of(trailer).kill()
        assert "lost" in fourth.hears("error")
        assert fourth.ends() == 1013
        gone(engine_client, "held", "sleep 2002", 10)


def many_terminals_leave_no_process_no_exec_no_thread_and_no_file(
    user: User, engine_client: docker.DockerClient
) -> None:
    trailer = user.trailer
    workspace = user.running("worn")
    agent = eventually(lambda: agent_of(trailer), 10, "no agent")

    def cycle(number: int) -> None:
        with SessionSocket(trailer, f"{workspace['id']}/exec", trailer.token()) as socket:
            socket.hears("session")
            if number % 10 == 0:
                socket.type(f"sleep {5000 + number} & echo begun-$((1+1))\n")
                socket.sees("begun-2")
            if number >= TERMINALS - 4:
                socket.cut()

    def settled() -> bool:
        return not engine_client.api.inspect_container("trailer-worn")["ExecIDs"]

    with ThreadPoolExecutor(4) as pool:
        # The first ones open what is kept, such as idle connections to the engine.
        list(pool.map(cycle, range(20)))
        eventually(settled, 10, "execs stay")
        threads, files = agent.num_threads(), agent.num_fds()
        list(pool.map(cycle, range(20, TERMINALS)))
    gone(engine_client, "worn", "sleep 5", 10)
    eventually(settled, 10, "execs stay")
    eventually(lambda: agent.num_threads() <= threads + 2, 10, "threads stay")
    eventually(lambda: agent.num_fds() <= files + 4, 10, "files stay open")
