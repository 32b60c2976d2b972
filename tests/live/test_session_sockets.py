"""Session sockets between a browser and a scripted agent: frames, rights, ends."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import timezone

from agent.protocol.sessions import MAX_PAYLOAD, WINDOW, FrameKind
from hosts.models import Host
from tests.factories import (
    make_agent_token,
    make_silent_host,
    make_user,
    make_workspace,
)
from tests.live.scripted_agent import ScriptedAgent
from tests.live.session_client import code, open_session, soon, words
from tests.live.session_scene import session_scene, started
from trailer.accounts.models import ApiToken, User
from workspaces.models import Workspace
from workspaces.sessions import consumers, link

if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIND", 0.5)


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Browsers that ask for seven lines read nothing until this is set."""
    room = asyncio.Event()
    send = AsyncWebsocketConsumer.send

    async def slow_send(self: Any, *args: Any, **kwargs: Any) -> None:
        if b"tail=7" in self.scope["query_string"]:
            await room.wait()
        await send(self, *args, **kwargs)

    monkeypatch.setattr(consumers.SessionConsumer, "send", slow_send)
    return room


async def test_a_log_arrives_byte_for_byte_with_words_in_their_place() -> None:
    owner, workspace, agent = await started()
    socket = await open_session("logs", workspace, owner, "tail=5&timestamps=1")
    stream = await agent.opened()
    asked = stream.request
    assert (asked.kind, asked.workspace_id, asked.user) == (
        "logs",
        str(workspace.pk),
        str(owner.pk),
    )
    assert (asked.tail, asked.timestamps, asked.follow) == (5, True, True)
    await stream.say(opened=True, container="abc")
    assert await words(socket) == {"container": "abc"}
    await stream.write(b"half \xe2\x82")
    await stream.write(b"\xac\n")
    assert await socket.receive_from(timeout=5) == b"half \xe2\x82"
    assert await socket.receive_from(timeout=5) == b"\xac\n"
    await stream.say(container="def")
    assert await words(socket) == {"container": "def"}
    await socket.send_to(text_data=json.dumps({"ping": 1}))
    assert await words(socket) == {"pong": 1}
    await socket.disconnect()
    await soon(lambda: stream.closed is not None, "the agent was not told")
    await agent.leave()


async def test_a_terminal_carries_keys_sizes_and_the_exit_code() -> None:
    owner, workspace, agent = await started()
    query = "cmd=sh&cmd=-c&cmd=echo%20%27a%20b%27&cols=120&rows=40"
    socket = await open_session("exec", workspace, owner, query)
    stream = await agent.opened()
    assert stream.request.command == ("sh", "-c", "echo 'a b'")
    assert stream.request.size == (120, 40)
    await stream.say(opened=True, session="f" * 32)
    assert await words(socket) == {"session": "f" * 32}
    await socket.send_to(bytes_data=b"ls\r")
    await socket.send_to(text_data=json.dumps({"resize": [80, 24]}))
    await soon(lambda: (stream.input, stream.sizes) == (b"ls\r", [(80, 24)]), "not passed on")
    for nonsense in ("[", '{"resize": [0, 1]}', '{"resize": [true, 2]}', '"x"', "[" * 9000):
        await socket.send_to(text_data=nonsense)
        assert "resize" in (await words(socket))["error"]
    await socket.send_to(text_data=json.dumps({"ping": 1}))
    assert await words(socket) == {"pong": 1}
    await stream.write(b"last")
    await stream.close(exit=3)
    assert await socket.receive_from(timeout=5) == b"last"
    assert await words(socket) == {"exit": 3}
    assert await code(socket) == 1000
    await agent.leave()


@pytest.mark.parametrize(
    ("closing", "held"), [(1000, False), (1005, False), (1001, True), (1006, True)]
)
async def test_only_a_closing_on_purpose_ends_a_terminal_at_once(closing: int, held: bool) -> None:
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner, f"session={'0' * 32}")
    stream = await agent.opened()
    assert stream.request.resume == "0" * 32
    await stream.say(opened=True, session="0" * 32)
    await words(socket)
    await socket.disconnect(code=closing)
    await soon(lambda: stream.closed is not None, "the agent was not told")
    assert stream.closed is not None
    assert stream.closed.hold is held
    await agent.leave()


async def test_a_socket_that_is_gone_before_the_agent_answered_leaves_nothing_open() -> None:
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner)
    await socket.disconnect()
    stream = await agent.opened()
    await soon(lambda: stream.closed is not None, "the session stays open")
    await agent.leave()


async def test_who_is_nobody_a_stranger_or_a_reader_is_kept_out() -> None:
    owner, workspace, agent = await started()
    stranger = await sync_to_async(make_user)()
    for kind in ("logs", "exec", "attach"):
        assert await code(await open_session(kind, workspace, None)) == 4401
        hidden = await open_session(kind, workspace, stranger)
        assert "no such workspace" in (await words(hidden))["error"]
        assert await code(hidden) == 4404
    for kind in ("exec", "attach"):
        assert await code(await open_session(kind, workspace, owner, scope="read")) == 4403
    assert agent.streams == {}
    socket = await open_session("logs", workspace, owner, scope="read")
    await (await agent.opened()).say(opened=True, container="c")
    assert await words(socket) == {"container": "c"}
    await socket.disconnect()
    await agent.leave()


@pytest.mark.parametrize(
    "query", ["cmd=%22open", "session=../x", "cmd=&cmd=x", "cmd=" + "x" * 70_000, "cmd=a%00b"]
)
async def test_a_bad_query_is_refused_with_a_sentence(query: str) -> None:
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner, query)
    assert (await words(socket))["error"]
    assert await code(socket) == 1008
    await agent.leave()


async def test_without_an_agent_the_reason_is_said_and_the_code_is_busy() -> None:
    owner, workspace = await session_scene()
    socket = await open_session("logs", workspace, owner)
    assert "not connected" in (await words(socket))["error"]
    assert await code(socket) == 1013
    silent = await sync_to_async(make_silent_host)()
    lost = await sync_to_async(make_workspace)(silent, owner)
    socket = await open_session("exec", lost, owner)
    assert "offline" in (await words(socket))["error"]
    assert await code(socket) == 1013
    await sync_to_async(Host.objects.filter(pk=workspace.host_id).update)(capabilities=["pull"])
    socket = await open_session("attach", workspace, owner)
    assert "too old" in (await words(socket))["error"]
    assert await code(socket) == 1013


async def test_late_heartbeats_refuse_no_session_that_the_agents_socket_can_carry() -> None:
    """On a busy machine they come seconds late, and the connection is there all the same."""
    late = timezone.now() - timedelta(seconds=20)
    owner, workspace = await session_scene(heartbeat_interval=1, last_heartbeat=late)
    agent = await ScriptedAgent.connect(workspace.host)
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="abc")
    assert await words(socket) == {"session": "abc"}
    await socket.disconnect()
    await agent.leave()


@pytest.mark.parametrize(
    ("answer", "wanted"), [("busy", 1013), ("not_there", 4404), ("ended", 1000), ("", 1000)]
)
async def test_the_agents_refusal_reaches_the_user(answer: str, wanted: int) -> None:
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner)
    await (await agent.opened()).close(error="Not now.", code=answer)
    assert await words(socket) == {"error": "Not now."}
    assert await code(socket) == wanted
    await agent.leave()


async def test_an_agent_that_goes_away_ends_its_sessions_with_a_word() -> None:
    owner, workspace, agent = await started()
    socket = await open_session("logs", workspace, owner)
    await (await agent.opened()).say(opened=True, container="c")
    await words(socket)
    await agent.leave()
    assert "lost" in (await words(socket))["error"]
    assert await code(socket) == 1013


async def test_only_the_newest_agent_of_a_host_is_asked() -> None:
    owner, workspace = await session_scene(epoch=7)
    old = await ScriptedAgent.connect(workspace.host, epoch=6)
    newest = await ScriptedAgent.connect(workspace.host, epoch=7)
    socket = await open_session("logs", workspace, owner)
    await (await newest.opened()).say(opened=True, container="c")
    assert await words(socket) == {"container": "c"}
    assert old.streams == {}
    # The same agent dials again: the connection it left is not asked any more.
    again = await ScriptedAgent.connect(workspace.host, epoch=7)
    other = await open_session("logs", workspace, owner)
    await again.opened()
    assert len(newest.streams) == 1
    for each in (socket, other):
        await each.disconnect()
    for agent in (old, again):
        await agent.leave()


@pytest.mark.parametrize("loss", ["account", "token", "workspace"])
async def test_what_is_taken_away_closes_the_open_socket(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK_SECONDS", 0.1)
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="0" * 32)
    await words(socket)
    if loss == "account":
        await sync_to_async(User.objects.filter(pk=owner.pk).update)(is_active=False)
    elif loss == "token":
        await sync_to_async(ApiToken.objects.filter(user=owner).delete)()
    else:
        await sync_to_async(Workspace.objects.filter(pk=workspace.pk).delete)()
    assert (await words(socket))["error"]
    assert await code(socket) == (4404 if loss == "workspace" else 4401)
    await soon(lambda: stream.closed is not None, "the process was not ended")
    assert stream.closed is not None
    assert stream.closed.hold is False
    await agent.leave()


async def test_a_browser_that_lags_gets_no_more_than_its_window_and_others_go_on(
    held_up: asyncio.Event,
) -> None:
    owner, workspace, agent = await started()
    slow = await open_session("logs", workspace, owner, "tail=7")
    stream = await agent.opened()
    await stream.say(opened=True, container="c")
    while stream.allowance.covers(b"x" * MAX_PAYLOAD):
        await stream.write(b"x" * MAX_PAYLOAD)
    quick = await open_session("logs", workspace, owner)
    other = await agent.opened()
    for number in range(3 * WINDOW // MAX_PAYLOAD):
        await soon(lambda: other.allowance.covers(b"x" * MAX_PAYLOAD), f"stuck at {number}")
        await other.write(b"x" * MAX_PAYLOAD)
        assert len(await quick.receive_from(timeout=5)) == MAX_PAYLOAD
    assert not stream.allowance.covers(b"x" * MAX_PAYLOAD), "credit without a reader"
    held_up.set()
    await soon(lambda: stream.allowance.left > WINDOW // 2, "the slow one never goes on")
    for socket in (slow, quick):
        await socket.disconnect()
    await agent.leave()


async def test_an_agent_that_ignores_its_credit_loses_the_stream(
    held_up: asyncio.Event,
) -> None:
    owner, workspace, agent = await started()
    socket = await open_session("logs", workspace, owner, "tail=7")
    stream = await agent.opened()
    for _ in range(4 * WINDOW // MAX_PAYLOAD):
        await stream.send(FrameKind.DATA, b"x" * MAX_PAYLOAD)
    await soon(lambda: stream.closed is not None, "the flood is taken")
    held_up.set()
    assert await code(socket) == 1013
    await agent.leave()


async def test_more_input_than_anybody_reads_ends_the_session() -> None:
    owner, workspace, agent = await started()
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="0" * 32)
    await words(socket)
    for _ in range(40):
        await socket.send_to(bytes_data=b"x" * 65536)
    assert "too slowly" in (await words(socket))["error"]
    assert await code(socket) == 1009
    assert len(stream.input) <= WINDOW
    await agent.leave()


async def test_frames_that_are_none_do_not_disturb_the_agents_socket() -> None:
    owner, workspace, agent = await started()
    for data in (b"\x02", b"\xff\x00\x00\x00\x01x", b"\x02\x00\x00\x00\x63x"):
        await agent.socket.send_to(bytes_data=data)
    token = await sync_to_async(make_agent_token)(workspace.host)
    assert token
    socket = await open_session("logs", workspace, owner)
    await (await agent.opened()).say(opened=True, container="c")
    assert await words(socket) == {"container": "c"}
    await socket.disconnect()
    await agent.leave()
