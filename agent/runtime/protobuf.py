"""As much of the protobuf wire format as BuildKit's few messages need; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT: Final = 0
_FIXED = {1: 8, 5: 4}
_BYTES: Final = 2


class Malformed(ValueError):
    """These bytes are no message."""


class Message:
    """The fields of one message by their numbers; a field may come any number of times."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _fields(data):
            self._fields.setdefault(number, []).append(value)

    def all(self, number: int) -> Iterator[bytes]:
        """Each as bytes: texts, or messages within the message."""
        return (value for value in self._fields.get(number, ()) if isinstance(value, bytes))

    def messages(self, number: int) -> Iterator[Message]:
        return (Message(data) for data in self.all(number))

    def text(self, number: int) -> str:
        """The last one counts; an absent one is empty."""
        found = list(self.all(number))
        return found[-1].decode(errors="replace") if found else ""

    def has(self, number: int) -> bool:
        return number in self._fields

    def flag(self, number: int) -> bool:
        return any(value for value in self._fields.get(number, ()) if isinstance(value, int))


def bytes_field(number: int, data: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    return _encoded(number << 3 | _VARINT) + _encoded(value)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind, value = key & 7, 0
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise Malformed(f"A field of kind {kind} is not known.")
        if at + size > len(data):
            raise Malformed("The message ends within a field.")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("The message ends within a number.")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
