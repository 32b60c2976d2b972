"""The embedded channel layer: in memory, but safe to send to from worker threads."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.layers import InMemoryChannelLayer


class EmbeddedChannelLayer(InMemoryChannelLayer):
    """Queues belong to the loop that reads them; a send from another loop is carried over there.

    The stock layer would put into the queue from the wrong thread, and the reader would sleep on.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._home: asyncio.AbstractEventLoop | None = None

    async def receive(self, channel: str) -> Any:
        self._home = asyncio.get_running_loop()
        return await super().receive(channel)

    async def send(self, channel: str, message: Any) -> None:
        await self._at_home(super().send(channel, message))

    async def group_send(self, group: str, message: Any) -> None:
        await self._at_home(super().group_send(group, message))

    async def _at_home(self, coroutine: Any) -> None:
        home = self._home
        if home is None or home.is_closed() or home is asyncio.get_running_loop():
            await coroutine
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, home))
