"""Realtime sessions on the agent's socket: binary frames of many streams, with credit for each.

A frame is one byte of type, the stream's number (32 bits, big endian) and a payload. The server
opens streams and numbers them; either side may close one. Text frames are not part of this.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

CAPABILITY: Final = "sessions"
LOGS: Final = "logs"
EXEC: Final = "exec"
ATTACH: Final = "attach"
PROXY: Final = "proxy"
# Answered with one WritableLayer as JSON.
LAYER: Final = "writable_layer"

_HEADER: Final = struct.Struct("!BI")
_CREDIT: Final = struct.Struct("!I")
# Bytes that may be under way in one direction of one stream, wherever they wait.
WINDOW: Final = 256 * 1024
# Of streams whose both ends agreed on it: transfers, which nobody types into.
WIDE_WINDOW: Final = 1024 * 1024
MAX_PAYLOAD: Final = 32 * 1024
# A small frame costs as much as a page: so the window bounds the number of frames too.
_LEAST_COST: Final = 4096
ALL_LINES: Final = -1


class FrameKind(IntEnum):
    OPEN = 1
    DATA = 2
    CREDIT = 3
    CONTROL = 4
    CLOSE = 5


class Frame(NamedTuple):
    kind: FrameKind
    stream: int
    payload: bytes = b""


class SessionOpen(msgspec.Struct, frozen=True, kw_only=True):
    """What the server asks for. `kind` is a word, so that newer kinds can be refused by name.

    `resume` names a session that this user had and lost. Empty `command`: a shell.
    """

    kind: str
    workspace_id: str
    user: str = ""
    command: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    resume: str = ""
    tail: int = 200
    follow: bool = True
    timestamps: bool = False
    previous: bool = False
    # Kind proxy: the port inside the container.
    port: int = 0
    # What the server would have under way in each direction; 0: the usual window.
    window: int = 0


class SessionControl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Words between the bytes, in their order. The agent's first one has `opened`.

    `replay` is the number of bytes that follow and were sent before, to an earlier socket.
    `window`, with `opened`: from now on both ends go by this window; 0: by the usual one.
    """

    opened: bool = False
    session: str = ""
    replay: int = 0
    container: str = ""
    resize: tuple[int, int] | None = None
    window: int = 0


class SessionClose(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a stream. `code` is one of the words below, or empty for a plain end.

    `hold` (server to agent): the user's socket was cut, the user may come back in a moment.
    """

    exit: int | None = None
    error: str = ""
    code: str = ""
    hold: bool = False


NOT_THERE: Final = "not_there"
BUSY: Final = "busy"
UNSUPPORTED: Final = "unsupported"
LOST: Final = "lost"
ENDED: Final = "ended"
REFUSED: Final = "refused"


def encode_frame(frame: Frame) -> bytes:
    return _HEADER.pack(frame.kind, frame.stream) + frame.payload


def decode_frame(data: bytes) -> Frame | None:
    """None for what this version does not know; whoever sent it gets no answer."""
    if len(data) < _HEADER.size:
        return None
    kind, stream = _HEADER.unpack_from(data)
    try:
        return Frame(FrameKind(kind), stream, data[_HEADER.size :])
    except ValueError:
        return None


def encode_credit(amount: int) -> bytes:
    return _CREDIT.pack(min(amount, 2**32 - 1))


def decode_credit(payload: bytes) -> int:
    return int(_CREDIT.unpack(payload)[0]) if len(payload) == _CREDIT.size else 0


def cost(payload: bytes) -> int:
    return max(len(payload), _LEAST_COST)


class Allowance:
    """What a sender may still send."""

    def __init__(self) -> None:
        self._window = WINDOW
        self.left = WINDOW

    def widen(self, window: int) -> None:
        self.left += window - self._window
        self._window = window

    def covers(self, payload: bytes) -> bool:
        return self.left >= cost(payload)

    def spend(self, payload: bytes) -> None:
        self.left -= cost(payload)

    def grant(self, amount: int) -> None:
        """Never over a whole window: a peer that gives too much gets no endless queue here."""
        self.left = min(self._window, self.left + amount)


class Receipts:
    """What a receiver has used up; returned to the sender in large pieces."""

    def __init__(self) -> None:
        self._window = WINDOW
        self._used = 0
        self._held = 0

    def widen(self, window: int) -> None:
        self._window = window

    def arrived(self, payload: bytes) -> bool:
        """False when the sender had no credit for it."""
        self._held += cost(payload)
        return self._held <= self._window

    def used(self, payload: bytes) -> int:
        """Credit to give back now; 0 while it is too little to be worth a frame."""
        self._used += cost(payload)
        if self._used < self._window // 4:
            return 0
        due, self._used = self._used, 0
        self._held -= due
        return due


def agreed_window(asked: int) -> int:
    """Never less than the usual one, with which every stream begins."""
    return max(WINDOW, min(asked, WIDE_WINDOW))


def payload_limit(window: int) -> int:
    """Eight frames fill a window, so that reading, sending and credit go on beside each other."""
    return window * MAX_PAYLOAD // WINDOW


def pieces(data: bytes, most: int = MAX_PAYLOAD) -> list[bytes]:
    """Cut into payloads of at most the largest size."""
    if len(data) <= most:
        return [data] if data else []
    return [data[start : start + most] for start in range(0, len(data), most)]
