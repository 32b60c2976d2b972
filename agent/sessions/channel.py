"""The agent's end of one stream: blocking reads and writes for a session, under credit."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec

from agent import clock
from agent.protocol.sessions import (
    LOST,
    MAX_PAYLOAD,
    Allowance,
    Frame,
    FrameKind,
    Receipts,
    SessionClose,
    SessionControl,
    decode_credit,
    encode_credit,
    payload_limit,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Message = TypeVar("Message", bound=msgspec.Struct)


class Channel:
    """`end` is set once the stream is over, by whichever side was first; `on_end` is called then,
    once, and must not block."""

    def __init__(self, number: int, put: Callable[[Frame], None]) -> None:
        self.number = number
        self._put = put
        self._turn = threading.Condition()
        self._allowance = Allowance()
        self._receipts = Receipts()
        self.payload_limit = MAX_PAYLOAD
        self._inbox: deque[bytes | SessionControl] = deque()
        self.end: SessionClose | None = None
        self.active_at = clock.monotonic()
        self.on_end: Callable[[], None] = lambda: None

    # --- the session's side ---

    def widen(self, window: int) -> None:
        """Before the first byte; `opened` tells the server."""
        with self._turn:
            self._allowance.widen(window)
            self._receipts.widen(window)
            self.payload_limit = payload_limit(window)

    def write(self, data: bytes) -> bool:
        """Blocks without credit: that is how a slow reader holds up its own stream only."""
        for piece in pieces(data, self.payload_limit):
            with self._turn:
                while self.end is None and not self._allowance.covers(piece):
                    self._turn.wait()
                if self.end is not None:
                    return False
                self._allowance.spend(piece)
                self.active_at = clock.monotonic()
                self._put(Frame(FrameKind.DATA, self.number, piece))
        return self.end is None

    def say(self, control: SessionControl) -> None:
        with self._turn:
            if self.end is None:
                payload = msgspec.json.encode(control)
                self._put(Frame(FrameKind.CONTROL, self.number, payload))

    def read(self) -> bytes | SessionControl | None:
        """The next input or word of the server, in order; None once the stream is over."""
        with self._turn:
            while self.end is None and not self._inbox:
                self._turn.wait()
            return None if self.end is not None else self._inbox.popleft()

    def used(self, data: bytes) -> None:
        """Input that was passed on: there is room for as much again."""
        with self._turn:
            due = self._receipts.used(data)
            if due and self.end is None:
                self._put(Frame(FrameKind.CREDIT, self.number, encode_credit(due)))

    def close(self, end: SessionClose) -> None:
        with self._turn:
            if self.end is not None:
                return
            self._put(Frame(FrameKind.CLOSE, self.number, msgspec.json.encode(end)))
        self._ended(end)

    # --- the socket's side: never blocks ---

    def handle(self, frame: Frame) -> None:
        match frame.kind:
            case FrameKind.DATA:
                self._arrived(frame.payload)
            case FrameKind.CREDIT:
                with self._turn:
                    self._allowance.grant(decode_credit(frame.payload))
                    self._turn.notify_all()
            case FrameKind.CONTROL:
                self._told(_read(frame.payload, SessionControl))
            case FrameKind.CLOSE:
                self._ended(_read(frame.payload, SessionClose) or SessionClose())
            case FrameKind.OPEN:
                """A number is used once."""

    def lost(self) -> None:
        """The socket is gone: nothing can be sent any more."""
        self._ended(SessionClose(code=LOST, hold=True))

    def _arrived(self, data: bytes) -> None:
        with self._turn:
            fits = self._receipts.arrived(data)
            if fits:
                self.active_at = clock.monotonic()
                self._inbox.append(data)
                self._turn.notify_all()
        if not fits:
            self.close(SessionClose(error="The server sent more than it was allowed to."))

    def _told(self, control: SessionControl | None) -> None:
        if control is None:
            return
        with self._turn:
            self.active_at = clock.monotonic()
            if self._inbox and isinstance(self._inbox[-1], SessionControl):
                # Only the last of several sizes matters, and they cost no credit.
                self._inbox.pop()
            self._inbox.append(control)
            self._turn.notify_all()

    def _ended(self, end: SessionClose) -> None:
        with self._turn:
            if self.end is not None:
                return
            self.end = end
            self._inbox.clear()
            self._turn.notify_all()
        self.on_end()


def _read(payload: bytes, kind: type[Message]) -> Message | None:
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.MsgspecError:
        return None
