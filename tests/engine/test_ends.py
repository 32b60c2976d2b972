"""Ends of containers on a real engine: each is told once, as the engine itself logged it."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.engine.agent_scene import busybox, container, running, sleeper
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from agent.protocol.report import WorkspaceEvent
    from tests.agent.fake_server import FakeServer
    from tests.engine.agent_scene import Launch

ENDS = ("crashed", "restarted")


def ending(times: int, code: int) -> tuple[str, ...]:
    """Ends so many times with this code, and runs from then on."""
    script = (
        "n=$(cat /n 2>/dev/null || echo 0); n=$((n+1)); echo $n > /n; "
        f"if [ $n -le {times} ]; then echo bye $n; exit {code}; fi; "
        "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
    )
    return ("sh", "-c", script)


def told(server: FakeServer) -> list[WorkspaceEvent]:
    return [row for row in server.events("w-web") if row.event in ENDS]


def causes(server: FakeServer) -> list[str]:
    rows = [*told(server), *(row for row in server.events("w-web") if row.event == "heal")]
    return [row.cause for row in rows if "outside Trailer" in row.cause]


def is_back(client: docker.DockerClient, restarts: int) -> bool:
    found = container(client)
    return found.attrs["RestartCount"] > restarts and found.status == "running"


def count(server: FakeServer) -> int:
    return sum(row.count for row in told(server))


def logged(client: docker.DockerClient, since: float) -> list[str]:
    """Exit codes of the workspace's container in the engine's own log of events; those of the
    tests before are in it, too."""
    found = client.api.events(
        since=int(since),
        until=int(time.time()) + 1,
        decode=True,
        filters={"type": "container", "event": "die", "container": container(client).id},
    )
    return [item["Actor"]["Attributes"]["exitCode"] for item in found]


def test_a_loop_of_crashes_is_told_as_the_engine_logged_it(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    began = time.time()
    server.desire(images=(busybox(),), workspaces=(sleeper(command=ending(7, 3)),))
    launch()
    eventually(lambda: count(server) >= 7, 60, "not told")
    running(server)
    assert logged(engine_client, began) == ["3"] * 7
    assert count(server) == 7
    assert {(row.event, row.exit and row.exit.code) for row in told(server)} == {("crashed", 3)}
    assert told(server)[-1].last_lines.endswith("bye 7")


def test_a_clean_end_is_a_restart_and_a_killed_process_says_by_which_signal(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(command=ending(1, 0)),))
    launch()
    eventually(lambda: count(server) == 1, 30, "not told")
    running(server)
    assert [(row.event, row.exit and row.exit.code) for row in told(server)] == [("restarted", 0)]
    os.kill(container(engine_client).attrs["State"]["Pid"], signal.SIGKILL)
    eventually(lambda: count(server) == 2, 30, "not told")
    last = told(server)[-1]
    assert last.exit is not None
    assert (last.event, last.exit.code, last.exit.signal) == ("crashed", 137, "SIGKILL")


def test_what_ended_while_the_agent_was_dead_is_told_when_it_is_back(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    agent = launch()
    running(server)
    agent.kill()
    for _ in range(2):
        found = container(engine_client)
        os.kill(found.attrs["State"]["Pid"], signal.SIGKILL)
        restarts = found.attrs["RestartCount"]
        eventually(partial(is_back, engine_client, restarts), 20)
    launch()
    eventually(lambda: count(server) >= 2, 30, "not told")
    assert [(row.event, row.exit and row.exit.code, row.count) for row in told(server)] == [
        ("crashed", 137, 2)
    ]


def test_stopping_and_replacing_are_no_ends_of_their_own(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    server.desire(images=(busybox(),), workspaces=(sleeper(revision=2, env={"A": "1"}),))
    running(server, revision=2)
    assert told(server) == []
    container(engine_client).restart(timeout=1)
    # The agent may be faster than the second half of the command: then it healed a stop.
    eventually(lambda: causes(server), 30, "not told")
    assert len(causes(server)) == 1


def test_a_process_out_of_memory_is_told_as_such(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    script = "sleep 1; if [ -e /n ]; then sleep 3600; fi; touch /n; exec tail /dev/zero"
    server.desire(
        images=(busybox(),),
        workspaces=(sleeper(command=("sh", "-c", script), memory_bytes=16 * 1024**2),),
    )
    launch()
    eventually(lambda: count(server) == 1, 40, "not told")
    ended = told(server)[0].exit
    assert ended is not None
    assert (ended.code, ended.oom) == (137, True)
