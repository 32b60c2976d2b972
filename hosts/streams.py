"""One end of a session inside the server; the other end may live in another web process."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from channels.exceptions import ChannelFull

from agent.protocol.sessions import FrameKind

if TYPE_CHECKING:
    from typing import Self

# Beside the kinds of frames that travel on to the agent, these stay in the server.
PING: Final = 100
PONG: Final = 101
OPENED: Final = 102

# An end that says nothing for this long died with its process.
SILENCE: Final = 40.0
_FULL_LIMIT: Final = 30.0
_FULL_PAUSE: Final = 0.02


class PeerLost(Exception):
    """The other end is gone, or something it sent is."""


class Message(NamedTuple):
    kind: int
    payload: bytes


class StreamEnd:
    """Messages go directly, so that a full channel is noticed and waited for, and are numbered, so
    that a lost one is: bytes of a terminal never go missing unseen."""

    def __init__(self, layer: Any, channel: str, peer: str = "") -> None:
        self._layer = layer
        self.channel = channel
        self.peer = peer
        self._sent = 0
        self._received = 0
        self._sending = asyncio.Lock()
        self.heard_at = time.monotonic()

    @classmethod
    async def create(cls, layer: Any, peer: str = "") -> Self:
        return cls(layer, await layer.new_channel(), peer)

    async def send(self, kind: int, payload: bytes = b"") -> None:
        async with self._sending:
            message = {
                "type": "session.message",
                "number": self._sent,
                "kind": int(kind),
                "payload": payload,
                "sender": self.channel,
            }
            self._sent += 1
            deadline = time.monotonic() + _FULL_LIMIT
            while True:
                try:
                    await self._layer.send(self.peer, message)
                except ChannelFull:
                    if time.monotonic() >= deadline:
                        raise PeerLost from None
                    await asyncio.sleep(_FULL_PAUSE)
                else:
                    return

    async def receive(self) -> Message:
        """The next message of the peer; without one, the first that answers becomes it."""
        while True:
            message = await self._layer.receive(self.channel)
            sender = message["sender"]
            self.peer = self.peer or sender
            if sender == self.peer:
                # Redis hands some messages out twice when another reader of the process leaves.
                if message["number"] < self._received:
                    continue
                break
            if message["kind"] == OPENED:
                # A second connection of the same agent answered too: it is not needed.
                await StreamEnd(self._layer, self.channel, sender).send(FrameKind.CLOSE, b"{}")
        self.heard_at = time.monotonic()
        if message["number"] > self._received:
            raise PeerLost
        self._received += 1
        return Message(message["kind"], bytes(message["payload"]))

    def is_silent(self) -> bool:
        return time.monotonic() - self.heard_at > SILENCE
