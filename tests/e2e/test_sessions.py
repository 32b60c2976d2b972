"""Logs, exec and attach through the whole product: socket, server, agent, engine and back."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e.scenario import User
from tests.e2e.terminal_scene import commands, gone, made_user, opener
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer

TALKER = [
    "sh",
    "-c",
    "trap 'exit 0' TERM; n=0; while :; do n=$((n+1)); echo line-$n; sleep 0.1; done",
]
ECHO = ["sh", "-c", "trap 'exit 0' TERM; while read -r word; do echo heard $word; done; exit 5"]


@pytest.fixture
def user(running_trailer: RunningTrailer) -> User:
    return User(running_trailer)


def test_a_log_is_followed_over_a_restart_and_a_replacement_and_read_back(
    user: User, engine_client: docker.DockerClient
) -> None:
    trailer = user.trailer
    workspace = user.running("talker", command=TALKER)
    with ExitStack() as stack:
        socket = opener(trailer, workspace, stack)("logs", tail=2)
        first = socket.hears("container")
        assert first == workspace["container_id"]
        socket.sees("line-12\n")

        user.post(f"/workspaces/{workspace['id']}/stop/")
        user.wait_for(workspace, "stopped")
        before = bytes(socket.output)
        user.post(f"/workspaces/{workspace['id']}/start/")
        eventually(lambda: len(socket.words) == 2, 15, "the new run was not announced")
        assert socket.words[1] == {"container": first}
        eventually(lambda: b"line-3\n" in socket.output[len(before) :], 15, "nothing follows")
        assert socket.output[len(before) :].startswith(b"line-1\n"), "not the new run alone"
        user.wait_for(workspace, "running")

        missing = trailer.api("GET", f"/workspaces/{workspace['id']}/logs/?previous=1")
        assert missing.status_code == 404
        assert "earlier container" in missing.json()["message"]
        mark = len(socket.output)
        user.post(f"/workspaces/{workspace['id']}/redeploy/")
        eventually(lambda: len(socket.words) == 3, 20, "the new container was not announced")
        second = socket.words[2]["container"]
        assert second != first
        assert user.wait_for(workspace, "running")["container_id"] == second
        eventually(
            lambda: b"line-4\n" in socket.output[mark:].partition(b"line-1\n")[2],
            15,
            "the new container says nothing",
        )

    whole = trailer.api("GET", f"/workspaces/{workspace['id']}/logs/")
    assert whole.status_code == 200, whole.text
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert whole.text.splitlines()[0] == "line-1"
    newest = trailer.api("GET", f"/workspaces/{workspace['id']}/logs/?tail=2&timestamps=1")
    assert [line.split()[1][:5] for line in newest.text.splitlines()] == ["line-"] * 2
    assert newest.text.startswith("20")
    previous = trailer.api("GET", f"/workspaces/{workspace['id']}/logs/?previous=1&tail=3")
    assert previous.status_code == 200, previous.text
    assert len(previous.text.splitlines()) == 3
    bad = trailer.api("GET", f"/workspaces/{workspace['id']}/logs/?tail=-1")
    assert (bad.status_code, bad.json()["code"]) == (400, "invalid")


def test_a_terminal_types_resizes_exits_and_leaves_nothing_behind(
    user: User, engine_client: docker.DockerClient
) -> None:
    workspace = user.running("shell")
    with ExitStack() as stack:
        open_socket = opener(user.trailer, workspace, stack)
        shell = open_socket("exec", cols=100, rows=30)
        session = shell.hears("session")
        shell.type("stty size; echo term=$TERM\n")
        assert "30 100" in shell.sees("term=xterm-256color")
        shell.say(resize=[132, 43])

        # The size travels beside the bytes: ask until it is there.
        def resized() -> bool:
            shell.type("stty size\n")
            return b"43 132" in shell.output

        eventually(resized, 10, "the window keeps its size", interval=0.2)
        shell.type("exit 7\n")
        assert shell.hears("exit") == 7
        assert shell.ends() == 1000

        listed = open_socket("exec", cmd=["sh", "-c", "echo one two; exit 3"])
        listed.sees("one two")
        assert (listed.hears("exit"), listed.ends()) == (3, 1000)
        split = open_socket("exec", cmd="sh -c 'echo three four'")
        split.sees("three four")
        assert split.hears("exit") == 0
        absent = open_socket("exec", cmd="nothing-of-that-name")
        assert absent.hears("exit") == 127

        again = open_socket("exec", session=session)
        assert "over" in again.hears("error")
        assert again.ends() == 4404

        # A clean close ends the foreground, the background, and what ignores a hangup.
        busy = open_socket("exec")
        busy.hears("session")
        busy.type("sleep 1001 & (trap '' HUP TERM; sleep 1002) & echo ready-$((1+1))\n")
        busy.sees("ready-2")
        busy.type("sleep 1003\n")
        eventually(lambda: "sleep 1003" in commands(engine_client, "shell"), 10, "no sleep")
        busy.close()
        gone(engine_client, "shell", "sleep 100")

    inspect = engine_client.api.inspect_container
    eventually(lambda: not inspect("trailer-shell")["ExecIDs"], 10, "execs stay")


def test_who_may_not_is_told_so_and_limits_are_kept(
    user: User, engine_client: docker.DockerClient
) -> None:
    trailer = user.trailer
    workspace = user.running("guarded", command=ECHO)
    stranger = made_user(user, "eve")
    body = {"name": "reader", "scope": "read"}
    reader = user.post("/tokens/", body, status=201)["key"]
    with ExitStack() as stack:
        open_socket = opener(trailer, workspace, stack)
        for kind in ("logs", "exec", "attach"):
            assert open_socket(kind, token=None).ends() == 4401
            hidden = open_socket(kind, token=stranger)
            assert (hidden.ends(), bool(hidden.hears("error"))) == (4404, True)
        assert open_socket("exec", token=reader).ends() == 4403
        assert open_socket("attach", token=reader).ends() == 4403
        assert open_socket("logs", token=reader).hears("container")
        assert open_socket("logs", tail="many").ends() == 1008

        attached = open_socket("attach")
        assert attached.hears("container") == workspace["container_id"]
        attached.type("hello\n")
        attached.sees("heard hello")

        terminals = [open_socket("exec") for _ in range(9)]
        for terminal in terminals:
            terminal.hears("session")
        full = open_socket("exec")
        assert "10 open terminals" in full.hears("error")
        assert full.ends() == 1013
        terminals[0].close()

        def has_room() -> bool:
            socket = open_socket("exec")
            eventually(lambda: socket.words, 10, "no answer")
            return "session" in socket.words[0]

        eventually(has_room, 10, "no room was made")

        user.post(f"/workspaces/{workspace['id']}/stop/")
        user.wait_for(workspace, "stopped")
        assert attached.hears("exit") == 0
        late = open_socket("exec")
        assert "not running" in late.hears("error")
        assert late.ends() == 1013
