"""The embedded channel layer: in memory, but safe to use from worker threads and their loops."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from channels import DEFAULT_CHANNEL_LAYER
from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer, channel_layers, get_channel_layer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CLEAN_SECONDS = 5.0
_CARRY_SECONDS = 5.0


class EmbeddedChannelLayer(InMemoryChannelLayer):
    """A channel's queue belongs to the loop that made the channel; a send from another loop is
    carried over there. The stock layer would put into the queue from the wrong thread, and the
    reader would sleep on. The name of a channel says which loop is its home."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()
        self._loops: dict[str, asyncio.AbstractEventLoop] = {}
        self._clean_at = 0.0

    async def new_channel(self, prefix: str = "specific.") -> str:
        return f"{prefix}.inmemory!{self._mark()}.{secrets.token_hex(8)}"

    async def send(self, channel: str, message: Any) -> None:
        home = self._home(channel)
        if home is None or home is asyncio.get_running_loop():
            await super().send(channel, message)
            return
        if not home.is_running():
            # Whoever read there is gone.
            return
        carried = asyncio.run_coroutine_threadsafe(super().send(channel, message), home)
        try:
            await asyncio.wait_for(asyncio.wrap_future(carried), _CARRY_SECONDS)
        except TimeoutError as problem:
            # A loop that stopped meanwhile never answers: a thread that waited for it for ever
            # would keep the whole server from ending.
            raise ChannelFull from problem

    async def group_add(self, group: str, channel: str) -> None:
        with self._lock:
            await super().group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        with self._lock:
            await super().group_discard(group, channel)

    async def group_send(self, group: str, message: Any) -> None:
        with self._lock:
            members = list(self.groups.get(group, ()))
        for channel in members:
            # A hint that finds no room is lost: its reader looks again by itself.
            with suppress(ChannelFull):
                await self.send(channel, message)

    def _clean_expired(self) -> None:
        """Called before each receive. Only what belongs to this loop, and messages only: whoever
        leaves discards its groups itself, however long it stayed."""
        now = time.time()
        if now < self._clean_at:
            return
        self._clean_at = now + _CLEAN_SECONDS
        here = asyncio.get_running_loop()
        queues: list[tuple[str, Any]] = list(self.channels.items())
        for channel, queue in queues:
            home = self._home(channel)
            if home is here or home is None:
                while not queue.empty() and queue._queue[0][0] < now:
                    queue.get_nowait()
            if (home is here and queue.empty() and not queue._getters) or _is_over(home):
                self.channels.pop(channel, None)

    def _mark(self) -> str:
        loop = asyncio.get_running_loop()
        mark = f"{id(loop):x}"
        if self._loops.get(mark) is not loop:
            with self._lock:
                self._loops = {
                    m: known for m, known in self._loops.items() if not known.is_closed()
                }
                self._loops[mark] = loop
        return mark

    def _home(self, channel: str) -> asyncio.AbstractEventLoop | None:
        return self._loops.get(channel.partition("!")[2].partition(".")[0])


def _is_over(home: asyncio.AbstractEventLoop | None) -> bool:
    return home is not None and home.is_closed()


@asynccontextmanager
async def layer_of_this_loop() -> AsyncIterator[Any]:
    """A channel layer that may be read in a short-lived loop, such as that of a synchronous view.

    The embedded one knows each channel's loop. One on Redis is read by a single loop of a process,
    so a view needs an instance of its own.
    """
    shared: Any = get_channel_layer()
    if isinstance(shared, EmbeddedChannelLayer):
        yield shared
        return
    own: Any = channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)
    try:
        yield own
    finally:
        await own.close_pools()
