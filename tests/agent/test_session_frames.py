"""Frames and credit of the agent's socket, and the engine's streams: pure, for every split."""

import itertools
from collections import deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol.sessions import (
    MAX_PAYLOAD,
    WIDE_WINDOW,
    WINDOW,
    Allowance,
    Frame,
    FrameKind,
    Receipts,
    cost,
    decode_credit,
    decode_frame,
    encode_credit,
    encode_frame,
    payload_limit,
    pieces,
)
from agent.runtime.docker_streams import Dechunker, Demultiplexer


@given(st.sampled_from(FrameKind), st.integers(0, 2**32 - 1), st.binary(max_size=64))
def test_a_frame_reads_back_as_it_was_written(
    kind: FrameKind, stream: int, payload: bytes
) -> None:
    frame = Frame(kind, stream, payload)
    assert decode_frame(encode_frame(frame)) == frame


def test_the_bytes_of_a_frame_never_change() -> None:
    assert encode_frame(Frame(FrameKind.DATA, 258, b"hi")) == b"\x02\x00\x00\x01\x02hi"
    assert encode_frame(Frame(FrameKind.CREDIT, 1, encode_credit(65536))) == (
        b"\x03\x00\x00\x00\x01\x00\x01\x00\x00"
    )


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\x00\x00\x00", b"\x63\x00\x00\x00\x01x"])
def test_what_is_no_frame_of_this_version_is_none(data: bytes) -> None:
    assert decode_frame(data) is None


@given(st.binary(max_size=8))
def test_credit_that_cannot_be_read_is_none_given(payload: bytes) -> None:
    assert decode_credit(payload) >= 0
    assert len(payload) == 4 or decode_credit(payload) == 0


@given(st.binary(max_size=3 * MAX_PAYLOAD))
def test_pieces_are_small_enough_and_nothing_is_lost(data: bytes) -> None:
    assert b"".join(pieces(data)) == data
    assert all(0 < len(piece) <= MAX_PAYLOAD for piece in pieces(data))


@given(
    st.lists(st.integers(1, MAX_PAYLOAD), max_size=200),
    st.sampled_from([WINDOW, WINDOW + 1, WIDE_WINDOW]),
    st.randoms(),
)
def test_a_stream_always_goes_on_and_never_holds_more_than_its_window(
    sizes: list[int], window: int, random: Random
) -> None:
    allowance, receipts = Allowance(), Receipts()
    for end in (allowance, receipts):
        end.widen(window)
    scale = payload_limit(window) / MAX_PAYLOAD
    waiting, under_way = deque(b"x" * int(size * scale) for size in sizes), deque[bytes]()
    while waiting or under_way:
        can_send = bool(waiting) and allowance.covers(waiting[0])
        assert can_send or under_way, "both sides wait for each other"
        if can_send and (not under_way or random.random() < 0.7):
            payload = waiting.popleft()
            allowance.spend(payload)
            assert receipts.arrived(payload)
            under_way.append(payload)
            assert sum(map(cost, under_way)) <= window
        else:
            allowance.grant(receipts.used(under_way.popleft()))


def test_a_sender_without_credit_is_noticed() -> None:
    receipts = Receipts()
    full = [receipts.arrived(b"x" * MAX_PAYLOAD) for _ in range(WINDOW // MAX_PAYLOAD)]
    assert all(full)
    assert not receipts.arrived(b"x")


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), CUTS)
def test_chunks_come_out_whole_however_they_arrive(chunks: list[bytes], cuts: list[int]) -> None:
    wrapped = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    decoder = Dechunker()
    pieces_out = [decoder.feed(piece) for piece in split(wrapped + b"0\r\n\r\n", cuts)]
    assert b"".join(pieces_out) == b"".join(chunks)
    assert decoder.ended


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8), CUTS)
def test_output_and_errors_come_out_in_order_however_they_arrive(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    wrapped = b"".join(
        bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for kind, data in frames
    )
    decoder = Demultiplexer()
    found = b"".join(decoder.feed(piece) for piece in split(wrapped, cuts))
    assert found == b"".join(data for _, data in frames)
