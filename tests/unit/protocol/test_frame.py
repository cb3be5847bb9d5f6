"""Frames: lengths that cannot be, limits, and bytes that arrive in pieces."""

import struct

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol.frame import FrameBuffer, frame


def test_a_frame_is_its_length_and_its_payload() -> None:
    assert frame(b"abc") == b"\0\0\0\3abc"
    assert list(FrameBuffer().feed(frame(b"abc") + frame(b""))) == [b"abc", b""]


def test_pieces_wait_for_the_rest() -> None:
    buffer = FrameBuffer()
    assert [list(buffer.feed(bytes([byte]))) for byte in b"\0\0\0\2ab"] == [[], [], [], [], [], [b"ab"]]
    assert len(buffer) == 0


def test_frames_not_taken_are_given_later() -> None:
    buffer = FrameBuffer()
    first = next(buffer.feed(frame(b"a") + frame(b"b")))
    assert (first, list(buffer.feed(b""))) == (b"a", [b"b"])


@pytest.mark.parametrize("size", [-1, -(1 << 31), 11, (1 << 31) - 1])
def test_a_bad_length_is_named_with_its_position_and_ends_the_stream(size: int) -> None:
    buffer = FrameBuffer(limit=10)
    frames = buffer.feed(frame(b"good") + struct.pack(">i", size) + b"rest")
    assert next(frames) == b"good"
    with pytest.raises(DecodeError, match=f"frame length {size} at byte 8 is not within 0 and 10"):
        next(frames)
    with pytest.raises(DecodeError):
        list(buffer.feed(frame(b"more")))


def test_the_limit_itself_is_allowed() -> None:
    assert list(FrameBuffer(limit=3).feed(frame(b"abc"))) == [b"abc"]


def test_a_long_frame_in_many_pieces_is_held_once() -> None:
    payload = bytes(1 << 20)
    buffer = FrameBuffer()
    stream = frame(payload)
    got = [one for at in range(0, len(stream), 1 << 12) for one in buffer.feed(stream[at : at + (1 << 12)])]
    assert got == [payload]
