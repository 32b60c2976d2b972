"""Sessions between two web processes: the agent's socket in one, the browser's in the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from channels_redis.core import RedisChannelLayer

from agent.protocol.sessions import MAX_PAYLOAD, WINDOW
from tests.factories import api_client, make_host, make_user, make_workspace
from tests.live.scripted_agent import ScriptedAgent
from tests.live.session_client import code, open_session, soon, words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def process(redis_url: str, settings: Any) -> AsyncIterator[Callable[[], None]]:
    """Each call: what connects from now on does so in another web process."""
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [redis_url], "capacity": 2000},
        }
    }
    made: list[RedisChannelLayer] = []

    def switch() -> None:
        made.append(RedisChannelLayer(hosts=[redis_url], capacity=2000))
        channel_layers.set("default", made[-1])

    switch()
    yield switch
    for layer in made:
        await layer.close_pools()


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
