"""The sessions of one connection to the server: numbers become channels, frames find their way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from agent.protocol.sessions import (
    UNSUPPORTED,
    Frame,
    FrameKind,
    SessionClose,
    SessionOpen,
    decode_frame,
)
from agent.sessions.channel import Channel
from agent.sessions.sender import FairSender

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.sessions.manager import Sessions


class Wire:
    """Made anew for each connection; `frame` never blocks."""

    def __init__(self, sessions: Sessions, send: Callable[[bytes], None]) -> None:
        self._sessions = sessions
        self._sender = FairSender(send)
        self._lock = threading.Lock()
        self._channels: dict[int, Channel] = {}
        self._thread = threading.Thread(
            target=self._sender.run, name="session-sender", daemon=True
        )
        self._thread.start()

    def frame(self, data: bytes) -> None:
        frame = decode_frame(data)
        if frame is None:
            return
        if frame.kind is FrameKind.OPEN:
            self._open(frame)
            return
        with self._lock:
            channel = self._channels.get(frame.stream)
        # A stream that is over here: the other side has not heard it yet.
        if channel is not None:
            channel.handle(frame)
            if channel.end is not None:
                self._forget(channel)

    def lost(self) -> None:
        """The connection is over; sessions may be asked for again on the next one."""
        self._sender.stop()
        with self._lock:
            channels = list(self._channels.values())
            self._channels.clear()
        for channel in channels:
            channel.lost()

    def queued_bytes(self) -> int:
        return self._sender.queued_bytes()

    def _open(self, frame: Frame) -> None:
        try:
            request = msgspec.json.decode(frame.payload, type=SessionOpen)
        except msgspec.MsgspecError:
            end = SessionClose(error="The agent cannot read this request.", code=UNSUPPORTED)
            self._sender.put(Frame(FrameKind.CLOSE, frame.stream, msgspec.json.encode(end)))
            return
        channel = Channel(frame.stream, self._put)
        with self._lock:
            if frame.stream in self._channels:
                return
            self._channels[frame.stream] = channel
        self._sessions.open(channel, request)

    def _put(self, frame: Frame) -> None:
        self._sender.put(frame)
        if frame.kind is FrameKind.CLOSE:
            with self._lock:
                self._channels.pop(frame.stream, None)

    def _forget(self, channel: Channel) -> None:
        with self._lock:
            self._channels.pop(channel.number, None)
