"""The numbers of a session's messages: a missing one is noticed, a second one is dropped."""

from __future__ import annotations

import pytest

from hosts.streams import PeerLost, StreamEnd


class Layer:
    """Hands out messages with these numbers."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    async def receive(self, channel: str) -> dict[str, object]:
        number = self._numbers.pop(0)
        return {"sender": "far", "number": number, "kind": 1, "payload": b"%d" % number}


async def test_a_message_that_comes_twice_counts_once() -> None:
    end = StreamEnd(Layer(0, 1, 0, 1, 2), "here", "far")
    assert [(await end.receive()).payload for _ in range(3)] == [b"0", b"1", b"2"]


async def test_a_message_that_is_missing_ends_the_stream() -> None:
    end = StreamEnd(Layer(0, 2), "here", "far")
    await end.receive()
    with pytest.raises(PeerLost):
        await end.receive()
