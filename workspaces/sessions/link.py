"""A session's way to the host's agent: found through the agent's group, then a direct stream."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from agent.protocol.sessions import (
    LOST,
    MAX_PAYLOAD,
    WINDOW,
    Allowance,
    FrameKind,
    Receipts,
    SessionClose,
    SessionControl,
    SessionOpen,
    agreed_window,
    decode_credit,
    encode_credit,
    payload_limit,
    pieces,
)
from hosts.streams import OPENED, PING, PeerLost, StreamEnd
from trailer.errors import Unavailable
from trailer.events import agent_group

if TYPE_CHECKING:
    from workspaces.sessions.access import Place

logger = logging.getLogger(__name__)

# Seconds in which a connected agent's socket answers. It is a few milliseconds away, but a server
# on a busy machine may get to it later: 3 s were taken for the cause of one refused log.
_FIND: Final = 10.0
_LOST: Final = SessionClose(
    error="The connection to the host's agent was lost. Try again.", code=LOST
)

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Item(NamedTuple):
    """One of the three: bytes, words, or the end."""

    data: bytes = b""
    control: SessionControl | None = None
    close: SessionClose | None = None


class AgentLink:
    """Everything that arrives is taken from the channel layer at once, where it would expire; what
    may be under way is bounded by the credit this end gives."""

    def __init__(self, end: StreamEnd, window: int = 0) -> None:
        """`window` is the largest that the agent may agree to."""
        self._end = end
        self._largest = window
        self._payload_limit = MAX_PAYLOAD
        self._allowance = Allowance()
        self._receipts = Receipts()
        self._opened = asyncio.Event()
        self._news = asyncio.Event()
        self._inbox: deque[Item] = deque()
        self._arrival = asyncio.Event()
        self._over = False
        self._drain: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, layer: Any, place: Place, request: SessionOpen) -> AgentLink:
        end = await StreamEnd.create(layer)
        message = {
            "type": "session.open",
            "host": str(place.host_id),
            "epoch": place.epoch,
            "reply": end.channel,
            "request": msgspec.json.encode(request),
        }
        link = cls(end, request.window)
        link._drain = asyncio.create_task(link._take())
        try:
            await layer.group_send(agent_group(place.host_id), message)
            async with asyncio.timeout(_FIND):
                await link._opened.wait()
        except TimeoutError:
            link._drain.cancel()
            raise Unavailable(
                f"The agent of host {place.host_name} is not connected. Try again in a moment."
            ) from None
        except BaseException:
            link._drain.cancel()
            raise
        return link

    # --- from the agent ---

    async def receive(self) -> Item:
        while not self._inbox:
            self._arrival.clear()
            await self._arrival.wait()
        return self._inbox.popleft()

    def next_bytes(self) -> bytes:
        """Bytes that are here already; none where there would be waiting, or something else."""
        return self._inbox.popleft().data if self._inbox and self._inbox[0].data else b""

    def is_quiet(self) -> bool:
        """Still open, and nothing came that nobody asked for."""
        return not self._over and not self._inbox

    async def used(self, data: bytes) -> None:
        """The bytes were passed on: the agent may send as many again."""
        due = self._receipts.used(data)
        if due and not self._over:
            await self._send(FrameKind.CREDIT, encode_credit(due))

    async def _take(self) -> None:
        try:
            while not self._over:
                message = await self._end.receive()
                await self._arrived(message.kind, message.payload)
        except PeerLost:
            self._put_end(_LOST)
        except Exception:
            # Redis may be away. Whoever waits here has nobody else to learn that from.
            logger.warning("the channel of a session broke", exc_info=True)
            self._put_end(_LOST)

    async def _arrived(self, kind: int, payload: bytes) -> None:
        if kind == OPENED:
            self._opened.set()
        elif kind == FrameKind.CREDIT:
            self._allowance.grant(decode_credit(payload))
            self._news.set()
        elif kind == FrameKind.DATA:
            if not self._receipts.arrived(payload):
                await self._send(FrameKind.CLOSE, msgspec.json.encode(SessionClose()))
                self._put_end(_LOST)
                return
            self._put(Item(data=payload))
        elif kind == FrameKind.CONTROL:
            control = _read(payload, SessionControl)
            if control is not None:
                if control.opened and control.window > WINDOW:
                    self._widen(agreed_window(min(control.window, self._largest)))
                self._put(Item(control=control))
        elif kind == FrameKind.CLOSE:
            self._put_end(_read(payload, SessionClose) or SessionClose())

    def _put_end(self, close: SessionClose) -> None:
        if not self._over:
            self._over = True
            self._news.set()
            self._put(Item(close=close))

    def _put(self, item: Item) -> None:
        self._inbox.append(item)
        self._arrival.set()

    def _widen(self, window: int) -> None:
        self._allowance.widen(window)
        self._receipts.widen(window)
        self._payload_limit = payload_limit(window)

    # --- to the agent ---

    async def write(self, data: bytes) -> None:
        """Waits for credit."""
        for piece in pieces(data, self._payload_limit):
            while not (self._over or self._allowance.covers(piece)):
                self._news.clear()
                await self._news.wait()
            if self._over:
                return
            self._allowance.spend(piece)
            await self._send(FrameKind.DATA, piece)

    async def say(self, control: SessionControl) -> None:
        if not self._over:
            await self._send(FrameKind.CONTROL, msgspec.json.encode(control))

    async def check(self) -> None:
        """Ask the other end for a sign of life; one that gave none for long is lost."""
        if self._end.is_silent():
            self._put_end(_LOST)
        await self._send(PING, b"")

    async def close(self, *, hold: bool = False) -> None:
        """`hold`: the user was cut off and may come back."""
        if self._drain is not None:
            self._drain.cancel()
        if self._over:
            return
        self._over = True
        await self._send(FrameKind.CLOSE, msgspec.json.encode(SessionClose(hold=hold)))

    async def _send(self, kind: int, payload: bytes) -> None:
        try:
            await self._end.send(kind, payload)
        except PeerLost:
            self._put_end(_LOST)


def _read(payload: bytes, kind: type[Struct]) -> Struct | None:
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.MsgspecError:
        return None
