"""Netlink messages to the kernel's packet filter (nf_tables): written, sent, answered.

By hand, since it is this little: the library for it (pyroute2) adds 22 MB and 0.3 s to an agent
that has to stay small, and the program `nft` is missing on many hosts and in the agent's image.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REQUEST: Final = 0x001
ACK: Final = 0x004
DUMP: Final = 0x300
CREATE: Final = 0x400
APPEND: Final = 0x800

_NETLINK_NETFILTER: Final = 12
_NF_TABLES: Final = 10
_INET: Final = 1
_ERROR: Final = 2
_DONE: Final = 3
_BATCH_BEGIN: Final = 0x10
_BATCH_END: Final = 0x11
# The two upper bits of an attribute's type are flags.
_TYPE: Final = 0x3FFF
_NESTED: Final = 0x8000
_HEAD: Final = struct.Struct("=IHHII")
_FAMILY: Final = struct.Struct(">BBH")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ERRNO: Final = struct.Struct("=i")
_BUFFER: Final = 1 << 16
# The kernel answers while it is asked; a socket that stays silent would be a bug of ours.
_PATIENCE: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Message:
    """One request about tables of the family `inet`, which holds for IPv4 and IPv6."""

    kind: int
    flags: int = 0
    attributes: bytes = b""


def attribute(kind: int, value: bytes) -> bytes:
    head = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind)
    return head + value + bytes(-len(value) % 4)


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">i", value))


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(attributes))


def attributes_in(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE, body[at + _ATTRIBUTE.size : at + length]
        at += length + -length % 4


def ask(message: Message) -> list[bytes]:
    """The attributes of each object in the answer. Raises OSError with the kernel's word."""
    with _socket() as kernel:
        kernel.send(_packed(message, number=1, flags=REQUEST | DUMP))
        return list(_answers(kernel, until=1))


def change(messages: Sequence[Message]) -> None:
    """All of them or none: the kernel takes a batch as one transaction."""
    last = len(messages)
    batch = [_mark(_BATCH_BEGIN, number=0)]
    for place, message in enumerate(messages, start=1):
        flags = REQUEST | message.flags | (ACK if place == last else 0)
        batch.append(_packed(message, number=place, flags=flags))
    batch.append(_mark(_BATCH_END, number=last + 1))
    with _socket() as kernel:
        kernel.send(b"".join(batch))
        for _ in _answers(kernel, until=last):
            pass


def _socket() -> socket.socket:
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    kernel.settimeout(_PATIENCE)
    kernel.bind((0, 0))
    return kernel


def _packed(message: Message, *, number: int, flags: int) -> bytes:
    body = _FAMILY.pack(_INET, 0, 0) + message.attributes
    kind = _NF_TABLES << 8 | message.kind
    return _HEAD.pack(_HEAD.size + len(body), kind, flags, number, 0) + body


def _mark(kind: int, *, number: int) -> bytes:
    """Begin or end of a batch; the kernel reads there which of its parts is meant."""
    body = _FAMILY.pack(0, 0, _NF_TABLES)
    return _HEAD.pack(_HEAD.size + len(body), kind, REQUEST, number, 0) + body


def _answers(kernel: socket.socket, *, until: int) -> Iterator[bytes]:
    """Ends with the answer to message `until`; raises the first refusal of any message."""
    while True:
        received = kernel.recv(_BUFFER)
        at = 0
        while at + _HEAD.size <= len(received):
            length, kind, _, number, _ = _HEAD.unpack_from(received, at)
            body = received[at + _HEAD.size : at + length]
            at += length + -length % 4
            if kind in (_ERROR, _DONE):
                problem = -_ERRNO.unpack_from(body)[0] if len(body) >= _ERRNO.size else 0
                if problem:
                    raise OSError(problem, os.strerror(problem))
                if number == until:
                    return
            else:
                yield body[_FAMILY.size :]
