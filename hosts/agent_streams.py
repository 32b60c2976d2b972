"""One session on an agent's socket: its frames to and from whoever opened it, in two tasks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from agent.protocol.sessions import (
    LOST,
    WINDOW,
    Frame,
    FrameKind,
    SessionClose,
    SessionOpen,
    agreed_window,
    cost,
    encode_frame,
)
from hosts.streams import OPENED, PING, PONG, PeerLost, StreamEnd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# What a user came for is gone; the agent keeps a terminal for a moment.
_LEFT: Final = msgspec.json.encode(SessionClose(hold=True))
_LOST: Final = msgspec.json.encode(
    SessionClose(error="The connection to the host's agent was lost. Try again.", code=LOST)
)


class AgentStream:
    """Waits for its own peer only: a reader that lags never holds up the agent's socket."""

    def __init__(
        self,
        number: int,
        end: StreamEnd,
        *,
        send: Callable[[bytes], Awaitable[None]],
        on_over: Callable[[AgentStream], None],
    ) -> None:
        self.number = number
        self.end = end
        self._send = send
        self._on_over = on_over
        self._waiting: asyncio.Queue[Frame] = asyncio.Queue()
        self._waiting_cost = 0
        self._window = WINDOW
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, request: bytes) -> None:
        self._window = agreed_window(msgspec.json.decode(request, type=SessionOpen).window)
        await self._send(encode_frame(Frame(FrameKind.OPEN, self.number, bytes(request))))
        await self.end.send(OPENED)
        self._tasks = [
            asyncio.create_task(self._to_peer()),
            asyncio.create_task(self._to_agent()),
        ]

    async def from_agent(self, frame: Frame) -> None:
        """Queued; the peer's credit bounds how much an honest agent has under way."""
        self._waiting_cost += cost(frame.payload)
        if self._waiting_cost > 2 * self._window:
            await self.left()
            return
        self._waiting.put_nowait(frame)

    async def left(self) -> None:
        """The peer is gone."""
        await self._tell_agent(_LEFT)
        self._over()

    async def lost(self) -> None:
        """The agent's socket is gone."""
        self._over()
        try:
            async with asyncio.timeout(1):
                await self.end.send(FrameKind.CLOSE, _LOST)
        except (PeerLost, TimeoutError):
            return

    async def _to_peer(self) -> None:
        try:
            while True:
                frame = await self._waiting.get()
                self._waiting_cost -= cost(frame.payload)
                await self.end.send(frame.kind, frame.payload)
                if frame.kind is FrameKind.CLOSE:
                    self._over()
                    return
        except PeerLost:
            await self.left()
        except Exception:
            # Redis may be away: without it the peer is as good as gone.
            logger.warning("the channel of a session broke", exc_info=True)
            await self.left()

    async def _to_agent(self) -> None:
        try:
            while True:
                message = await self.end.receive()
                if message.kind == PING:
                    await self.end.send(PONG)
                    continue
                kind = FrameKind(message.kind)
                await self._send(encode_frame(Frame(kind, self.number, message.payload)))
                if kind is FrameKind.CLOSE:
                    self._over()
                    return
        except (PeerLost, ValueError):
            await self.left()
        except Exception:
            # Redis may be away: without it the peer is as good as gone.
            logger.warning("the channel of a session broke", exc_info=True)
            await self.left()

    async def _tell_agent(self, payload: bytes) -> None:
        await self._send(encode_frame(Frame(FrameKind.CLOSE, self.number, payload)))

    def _over(self) -> None:
        self._on_over(self)
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
