"""Sessions between two web processes: the agent's socket in one, the browser's in the other."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import redis
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from channels_redis.core import RedisChannelLayer

from agent.protocol.sessions import MAX_PAYLOAD, WINDOW
from tests.factories import api_client, make_host, make_user, make_workspace
from tests.live.scripted_agent import ScriptedAgent
from tests.live.session_client import code, open_session, soon, words
from trailer.events import agent_group, nudge
from trailer.redis_layer import SignedRedisChannelLayer
from trailer.secrets import channel_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.live.scripted_agent import AgentStream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def process(redis_url: str, settings: Any) -> AsyncIterator[Callable[[], None]]:
    """Each call: what connects from now on does so in another web process."""
    config: dict[str, Any] = {
        "hosts": [redis_url],
        "capacity": 2000,
        "keys": channel_keys(settings.TRAILER_SECRET_KEYS),
    }
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "trailer.redis_layer.SignedRedisChannelLayer",
            "CONFIG": config,
        }
    }
    made: list[SignedRedisChannelLayer] = []

    def switch() -> None:
        made.append(SignedRedisChannelLayer(**config))
        channel_layers.set("default", made[-1])

    switch()
    yield switch
    for layer in made:
        await layer.close_pools()


async def test_a_socket_stays_open_while_nothing_happens(process: Callable[[], None]) -> None:
    host = await sync_to_async(make_host)()
    agent = await ScriptedAgent.connect(host)
    layer: Any = channel_layers["default"]
    waiting = asyncio.create_task(layer.receive(await layer.new_channel()))
    # Longer than one wait for a message, however it is answered.
    await asyncio.wait([waiting], timeout=layer.brpop_timeout + 1.5)
    assert not waiting.done(), waiting
    waiting.cancel()
    await sync_to_async(nudge)(host.pk)
    await soon(lambda: agent.nudges, "the agent's socket is dead")
    await agent.leave()


async def test_bytes_words_and_ends_cross_from_one_process_to_the_other(
    process: Callable[[], None],
) -> None:
    owner = await sync_to_async(make_user)()
    host = await sync_to_async(make_host)(capabilities=["sessions"])
    workspace = await sync_to_async(make_workspace)(host, owner)
    agent = await ScriptedAgent.connect(host)
    process()
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="0" * 32)
    assert await words(socket) == {"session": "0" * 32}
    await socket.send_to(bytes_data=b"ls\n")
    await soon(lambda: stream.input == b"ls\n", "the keys did not arrive")
    sent = b""
    for number in range(3 * WINDOW // MAX_PAYLOAD):
        await soon(lambda: stream.allowance.covers(b"x" * MAX_PAYLOAD), f"stuck at {number}")
        data = b"%06d" % number + b"x" * (MAX_PAYLOAD - 6)
        await stream.write(data)
        sent += data
    seen = b""
    while len(seen) < len(sent):
        frame = await socket.receive_from(timeout=5)
        assert isinstance(frame, bytes)
        seen += frame
    assert seen == sent
    await stream.close(exit=0)
    assert await words(socket) == {"exit": 0}
    assert await code(socket) == 1000

    # A synchronous view, in a thread and a loop of its own, as a WSGI worker has them.
    client = await sync_to_async(api_client)(owner)
    # The first request of a process loads every view, which is no part of what is waited for.
    await asyncio.to_thread(client.get, "/healthz")
    address = f"/api/v1/workspaces/{workspace.pk}/logs/"
    asking = [asyncio.create_task(asyncio.to_thread(client.get, address)) for _ in range(2)]
    for _ in asking:
        answering = await agent.opened()
        await answering.say(opened=True)
        await answering.write(b"line\n")
        await answering.close()
    for answer in await asyncio.gather(*asking):
        assert (answer.status_code, answer.content) == (200, b"line\n")

    other = await open_session("logs", workspace, owner)
    await (await agent.opened()).say(opened=True, container="c")
    await words(other)
    await agent.leave()
    assert "lost" in (await words(other))["error"]
    assert await code(other) == 1013


def _has(stream: AgentStream, data: bytes) -> bool:
    return stream.input == data


@contextmanager
def _watched(address: str) -> Iterator[list[str]]:
    """Every command that Redis gets meanwhile, as whoever reads along sees it."""
    seen: list[str] = []
    begun = threading.Event()

    def watch() -> None:
        client: Any = redis.Redis.from_url(address)
        with client.monitor() as monitor:
            begun.set()
            for command in monitor.listen():
                seen.append(command["command"])
                if "the watch is over" in command["command"]:
                    return

    thread = threading.Thread(target=watch)
    thread.start()
    assert begun.wait(5)
    try:
        yield seen
    finally:
        redis.Redis.from_url(address).echo("the watch is over")
        thread.join(5)


async def test_a_reader_of_redis_sees_nothing_of_terminals_and_logs(
    process: Callable[[], None], redis_url: str
) -> None:
    owner = await sync_to_async(make_user)()
    host = await sync_to_async(make_host)(capabilities=["sessions"])
    workspace = await sync_to_async(make_workspace)(host, owner)
    with _watched(redis_url) as seen:
        agent = await ScriptedAgent.connect(host)
        process()
        for kind in ("exec", "logs"):
            socket = await open_session(kind, workspace, owner)
            stream = await agent.opened()
            await stream.say(opened=True, session="0" * 32)
            await words(socket)
            if kind == "exec":
                await socket.send_to(bytes_data=b"canary-of-keys")
                await soon(partial(_has, stream, b"canary-of-keys"), "the keys did not arrive")
            await stream.write(b"canary-of-output")
            assert await socket.receive_from(timeout=5) == b"canary-of-output"
            await stream.close(exit=0)
            assert await code(socket) == 1000
        # A socket that outlives its test is ended with the loop, in the middle of a read, and may
        # then wait for ever.
        await agent.leave()
    text = "\n".join(seen)
    assert agent_group(host.pk) in text, "the watch saw none of it"
    assert "canary" not in text
    client: Any = redis.Redis.from_url(redis_url)
    kept = [client.dump(key) or b"" for key in client.keys("*")]
    client.close()
    assert b"canary" not in b"".join(kept)


async def test_who_has_no_key_can_write_to_redis_but_say_nothing(
    process: Callable[[], None], redis_url: str, settings: Any
) -> None:
    owner = await sync_to_async(make_user)()
    host = await sync_to_async(make_host)(capabilities=["sessions"])
    workspace = await sync_to_async(make_workspace)(host, owner)
    agent = await ScriptedAgent.connect(host)
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="0" * 32)
    await words(socket)
    client: Any = redis.Redis.from_url(redis_url)
    [member] = client.zrange(f"asgi:group:{agent_group(host.pk)}", 0, -1)
    inbox = f"asgi{member.decode().partition('!')[0]}!"
    foreign = SignedRedisChannelLayer(hosts=[redis_url], keys=["somebody else's"])
    plain = RedisChannelLayer(hosts=[redis_url])
    for layer in (foreign, plain):
        await layer.group_send(agent_group(host.pk), {"type": "nudge"})
        await layer.send(member.decode(), {"type": "websocket.close"})
        await layer.close_pools()
    for number, garbage in enumerate((b"", b"x", b"\xff" * 500)):
        client.zadd(inbox, {garbage: number})
    client.close()
    # The one with the key comes last, so the others were read before it.
    process()
    await channel_layers["default"].group_send(agent_group(host.pk), {"type": "nudge"})
    await soon(lambda: agent.nudges, "the nudge did not arrive")
    assert agent.nudges == 1
    await socket.send_to(bytes_data=b"ls\n")
    await soon(lambda: stream.input == b"ls\n", "the keys did not arrive")
    await socket.disconnect()
    await agent.leave()


async def test_an_agent_that_redis_puts_into_another_hosts_group_gets_no_session(
    process: Callable[[], None], redis_url: str
) -> None:
    owner = await sync_to_async(make_user)()
    host, other = [await sync_to_async(make_host)(capabilities=["sessions"]) for _ in range(2)]
    workspace = await sync_to_async(make_workspace)(host, owner)
    agent, spy = await ScriptedAgent.connect(host), await ScriptedAgent.connect(other)
    client: Any = redis.Redis.from_url(redis_url)
    ours, theirs = (f"asgi:group:{agent_group(each.pk)}" for each in (host, other))
    await soon(lambda: client.zcard(ours) and client.zcard(theirs), "no agent came")
    [(member, score)] = client.zrange(theirs, 0, -1, withscores=True)
    client.zadd(ours, {member: score})
    client.close()
    await channel_layers["default"].group_send(agent_group(host.pk), {"type": "nudge"})
    await soon(lambda: spy.nudges, "the spy is not in the group")
    socket = await open_session("exec", workspace, owner)
    stream = await agent.opened()
    await stream.say(opened=True, session="0" * 32)
    assert await words(socket) == {"session": "0" * 32}
    assert spy.streams == {}
    await socket.disconnect()
    await agent.leave()
    await spy.leave()
