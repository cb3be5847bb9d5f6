"""Frames: a 4-byte length before every request and response on a connection."""

import struct
from collections.abc import Iterator

from kgroup.errors import DecodeError

MAX_FRAME = 100 * 1024 * 1024  # Kafka's default of socket.request.max.bytes

_LENGTH = struct.Struct(">i")


def frame(payload: bytes) -> bytes:
    """Return the payload with its length in front."""
    return _LENGTH.pack(len(payload)) + payload


class FrameBuffer:
    """Cuts a byte stream into frames, however the bytes arrive; does no I/O itself.

    Never holds more than one frame of `limit` bytes and the piece fed last. After a DecodeError the stream
    has no further frame boundary that could be trusted, so every later call raises again.
    """

    __slots__ = ("_data", "_limit", "_passed")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._data = bytearray()
        self._passed = 0  # bytes of the stream that came before _data

    def __len__(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take in bytes and yield the frames they complete, without their lengths.

        The frames before a bad length are yielded first; then DecodeError names its position in the stream.
        Frames not asked for stay inside until the next call.
        """
        self._data += data
        return self._complete()

    def _complete(self) -> Iterator[bytes]:
        while len(self._data) >= 4:
            (size,) = _LENGTH.unpack_from(self._data)
            if not 0 <= size <= self._limit:
                raise DecodeError(
                    f"frame length {size} at byte {self._passed} is not within 0 and {self._limit}"
                )
            end = 4 + size
            if len(self._data) < end:
                return
            payload = bytes(memoryview(self._data)[4:end])
            del self._data[:end]
            self._passed += end
            yield payload
