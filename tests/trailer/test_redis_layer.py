"""The channel layer on Redis: no reader that leaves takes a message of another one along."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.ground.wait import eventually
from trailer import redis_layer
from trailer.redis_layer import SignedRedisChannelLayer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.ground.redis import PrivateRedis

KEY = "a key of this test's own"


@pytest.fixture
async def layer(redis_url: str) -> AsyncIterator[Any]:
    made = SignedRedisChannelLayer(hosts=[redis_url], capacity=2000, keys=[KEY])
    yield made
    await made.close_pools()


def _client(server: PrivateRedis) -> Any:
    return redis.Redis.from_url(server.url)


async def _is_read(server: PrivateRedis) -> None:
    """Somebody waits for the layer's messages."""
    client = _client(server)
    await asyncio.to_thread(
        eventually,
        lambda: [each for each in client.client_list() if each["cmd"] == "bzpopmin"],
        5,
        "nobody reads",
    )
    client.close()


async def test_messages_arrive_in_order_whoever_comes_and_goes(layer: Any) -> None:
    channel = await layer.new_channel()
    seen: list[int] = []

    async def come_and_go() -> None:
        while len(seen) < 300:
            visitor = asyncio.create_task(layer.receive(await layer.new_channel()))
            await asyncio.sleep(0.001)
            visitor.cancel()
            await asyncio.wait([visitor])

    async def read() -> None:
        while len(seen) < 300:
            seen.append((await layer.receive(channel))["number"])

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(come_and_go())
        group.create_task(read())
        for number in range(300):
            await layer.send(channel, {"type": "hint", "number": number})
    assert seen == list(range(300))


async def test_everybody_who_waits_learns_that_redis_is_gone_and_can_wait_again(
    layer: Any, redis_server: PrivateRedis
) -> None:
    channels = [await layer.new_channel() for _ in range(3)]
    readers = [asyncio.create_task(layer.receive(channel)) for channel in channels]
    await _is_read(redis_server)
    redis_server.kill9()
    try:
        done, _ = await asyncio.wait(readers, timeout=5)
        assert len(done) == 3
        assert all(isinstance(each.exception(), redis.RedisError | OSError) for each in done)
    finally:
        await asyncio.to_thread(redis_server.start)
    again = asyncio.create_task(layer.receive(channels[0]))
    await layer.send(channels[0], {"type": "hint"})
    async with asyncio.timeout(5):
        assert await again == {"type": "hint"}


async def test_nothing_is_kept_of_channels_whose_readers_left(layer: Any) -> None:
    for number in range(20):
        channel = await layer.new_channel()
        if number % 2:
            await layer.send(channel, {"type": "hint"})
            await layer.receive(channel)
            continue
        reader = asyncio.create_task(layer.receive(channel))
        await asyncio.sleep(0.001)
        reader.cancel()
        await asyncio.wait([reader])
    assert layer.receive_buffer == {}


async def test_messages_for_a_reader_that_left_before_are_forgotten_in_time(
    layer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, busy, other = [await layer.new_channel() for _ in range(3)]
    for channel in (left, busy, other):
        await layer.send(channel, {"type": "hint"})
    await layer.receive(other)
    assert set(layer.receive_buffer) == {left, busy}
    assert await layer.receive(busy) == {"type": "hint"}, "a reader may come late"
    later = time.monotonic() + layer.expiry + 1
    monkeypatch.setattr(redis_layer, "time", SimpleNamespace(monotonic=lambda: later))
    await layer.send(other, {"type": "hint"})
    await layer.receive(other)
    assert layer.receive_buffer == {}


async def test_a_layer_can_be_closed_in_whatever_moment_of_a_read(redis_url: str) -> None:
    """Views have one of their own each, for one answer."""
    async with asyncio.timeout(20):
        for number in range(100):
            own: Any = SignedRedisChannelLayer(hosts=[redis_url], keys=[KEY])
            reader = asyncio.create_task(own.receive(await own.new_channel()))
            for _ in range(number % 50):
                await asyncio.sleep(0)
            reader.cancel()
            await own.close_pools()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("send", ("a!b", {"type": "x"})),
        ("group_send", ("all", {"type": "x"})),
        ("group_add", ("all", "a!b")),
        ("group_discard", ("all", "a!b")),
    ],
)
async def test_who_is_cancelled_while_it_sends_learns_it(
    layer: Any, monkeypatch: pytest.MonkeyPatch, call: str, words: tuple[Any, ...]
) -> None:
    """As when redis-py swallows it."""

    async def swallow(self: Any, *_: Any) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return

    async def clear_up() -> None:
        try:
            await getattr(layer, call)(*words)
        finally:
            monkeypatch.undo()
            await getattr(layer, call)(*words)
            cleared.append(True)

    cleared: list[bool] = []
    monkeypatch.setattr(SignedRedisChannelLayer.__mro__[1], call, swallow)
    task = asyncio.create_task(clear_up())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleared == [True]


async def test_a_second_loop_is_refused_while_the_first_one_reads(layer: Any) -> None:
    """Each would be handed messages of the other one."""
    reader = asyncio.create_task(layer.receive(await layer.new_channel()))
    await asyncio.sleep(0)
    elsewhere = asyncio.to_thread(asyncio.run, layer.receive(await layer.new_channel()))
    with pytest.raises(RuntimeError, match="loop"):
        await elsewhere
    reader.cancel()
