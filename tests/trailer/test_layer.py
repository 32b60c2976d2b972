"""The embedded channel layer: each channel has its own loop, and senders may be in any other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from channels.exceptions import ChannelFull

from trailer.layer import EmbeddedChannelLayer


class LoopThread:
    """A thread with a loop, such as a job or a synchronous view has one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(5)

    def start(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


def test_two_loops_wait_for_answers_from_each_other() -> None:
    layer = EmbeddedChannelLayer()
    first, second = LoopThread(), LoopThread()
    try:
        asking = first.run(layer.new_channel())
        serving = second.run(layer.new_channel())

        async def serve() -> None:
            for _ in range(200):
                message = await layer.receive(serving)
                await layer.send(asking, {"number": message["number"]})

        async def ask() -> list[int]:
            answers = []
            for number in range(200):
                await layer.send(serving, {"number": number})
                answers.append((await layer.receive(asking))["number"])
            return answers

        served = second.start(serve())
        assert first.run(ask()) == list(range(200))
        served.result(5)
    finally:
        first.stop()
        second.stop()


def test_a_group_reaches_its_members_in_all_loops() -> None:
    layer = EmbeddedChannelLayer()
    loops = [LoopThread(), LoopThread()]
    try:
        channels = [loop.run(layer.new_channel()) for loop in loops]
        for loop, channel in zip(loops, channels, strict=True):
            loop.run(layer.group_add("all", channel))
        waiting = [
            loop.start(layer.receive(channel))
            for loop, channel in zip(loops, channels, strict=True)
        ]
        asyncio.run(layer.group_send("all", {"type": "hint"}))
        assert [each.result(5) for each in waiting] == [{"type": "hint"}] * 2
    finally:
        for loop in loops:
            loop.stop()


def test_a_full_channel_is_an_error_for_a_direct_sender_in_another_loop() -> None:
    layer = EmbeddedChannelLayer(capacity=2)
    home = LoopThread()
    try:
        channel = home.run(layer.new_channel())

        async def send() -> None:
            await layer.send(channel, {"type": "x"})

        asyncio.run(send())
        asyncio.run(send())
        with pytest.raises(ChannelFull):
            asyncio.run(send())
        home.run(layer.group_add("g", channel))
        asyncio.run(layer.group_send("g", {"type": "x"}))
    finally:
        home.stop()


def test_a_loop_that_is_gone_takes_its_messages_along() -> None:
    layer = EmbeddedChannelLayer()
    home = LoopThread()
    channel = home.run(layer.new_channel())
    home.stop()
    asyncio.run(layer.send(channel, {"type": "x"}))
    assert channel not in layer.channels


async def test_a_member_that_stays_for_long_keeps_its_place_in_its_groups() -> None:
    layer = EmbeddedChannelLayer(group_expiry=0, expiry=0)
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    await layer.send(channel, {"type": "late"})
    layer._clean_expired()
    await layer.group_send("g", {"type": "fresh"})
    assert (await layer.receive(channel))["type"] == "fresh"
