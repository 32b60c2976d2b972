"""A workspace's log as one answer: bounded, the newest part of it, within a deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from agent.protocol import sessions as wire
from trailer.errors import Conflict, NotFound, Unavailable
from trailer.layer import layer_of_this_loop
from workspaces.sessions.link import AgentLink

if TYPE_CHECKING:
    from agent.protocol.sessions import SessionClose, SessionOpen
    from workspaces.sessions.access import Place

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_LINES: Final = 100_000
_DEADLINE: Final = 30.0


async def workspace_log(place: Place, request: SessionOpen) -> bytes:
    """Whole lines; raises NotFound, Conflict or Unavailable with the reason."""
    async with layer_of_this_loop() as layer:
        link = await AgentLink.open(layer, place, request)
        try:
            async with asyncio.timeout(_DEADLINE):
                return await _collect(link)
        except TimeoutError:
            raise Unavailable(
                f"The agent of host {place.host_name} did not send the log in time. "
                "Ask for fewer lines."
            ) from None
        finally:
            await link.close()


async def _collect(link: AgentLink) -> bytes:
    kept: deque[bytes] = deque()
    size, was_cut = 0, False
    while True:
        item = await link.receive()
        if item.close is not None:
            _raise_for(item.close)
            text = b"".join(kept)[-MOST_BYTES:]
            return text.partition(b"\n")[2] if was_cut or size > MOST_BYTES else text
        if item.data:
            kept.append(item.data)
            size += len(item.data)
            while size - len(kept[0]) >= MOST_BYTES:
                size -= len(kept.popleft())
                was_cut = True
            await link.used(item.data)


def _raise_for(close: SessionClose) -> None:
    if not close.error:
        return
    if close.code == wire.NOT_THERE:
        raise NotFound(close.error)
    if close.code in (wire.BUSY, wire.LOST, wire.UNSUPPORTED):
        raise Unavailable(close.error)
    raise Conflict(close.error)
