"""Numbers, texts and lists on the wire, and the frames around them (era 2.1, 2.2)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kgroup.errors import DecodeError

MIN_FRAME = 2
MAX_FRAME = 1024 * 1024

_INT16, _INT32, _INT64, _UINT16 = (struct.Struct(f">{kind}") for kind in "hiqH")


class Writer:
    """Appends values; `struct.error` for a number or a length that its field does not hold."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def int16(self, value: int) -> None:
        self.data += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.data += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.data += _INT64.pack(value)

    def boolean(self, value: bool) -> None:
        self.data.append(value)

    def string(self, value: str) -> None:
        encoded = value.encode("utf-8", "surrogatepass")
        self.data += _INT16.pack(len(encoded))
        self.data += encoded


class Reader:
    """Takes values off one frame; DecodeError, and nothing else, for bytes that are not what is asked for."""

    __slots__ = ("_data", "_pos")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    @property
    def left(self) -> int:
        """How many bytes have not been taken."""
        return len(self._data) - self._pos

    def int16(self) -> int:
        return self._number(_INT16)

    def uint16(self) -> int:
        return self._number(_UINT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def boolean(self) -> bool:
        (value,) = self._take(1)
        if value > 1:
            raise DecodeError(f"{value} before byte {self._pos} is not a boolean")
        return value == 1

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise DecodeError(f"null before byte {self._pos}, where a text is due")
        return value

    def nullable_string(self) -> str | None:
        size = self.int16()
        if size == -1:
            return None
        if size < 0:
            raise DecodeError(f"negative length {size} before byte {self._pos}")
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"no UTF-8 before byte {self._pos}: {error.reason}") from None

    def count(self, least_size: int) -> int:
        """How many items follow, each of at least `least_size` bytes."""
        count = self.int16()
        if count < 0 or count * least_size > self.left:
            raise DecodeError(f"{count} items before byte {self._pos}, {self.left} bytes left")
        return count

    def end(self) -> None:
        """Raises DecodeError unless everything has been taken."""
        if self.left:
            raise DecodeError(f"{self.left} bytes left over at byte {self._pos}")

    def _number(self, kind: struct.Struct) -> int:
        (value,) = kind.unpack(self._take(kind.size))
        return int(value)

    def _take(self, size: int) -> bytes:
        end = self._pos + size
        if end > len(self._data):
            raise DecodeError(f"{size} bytes wanted at byte {self._pos}, {self.left} left")
        taken = self._data[self._pos : end]
        self._pos = end
        return taken


def framed(out: Writer) -> bytes:
    """The payload with its size in front."""
    return _INT32.pack(len(out.data)) + bytes(out.data)


class Frames:
    """Cuts a stream into frames, however its bytes arrive; holds no more than one frame of `limit` bytes."""

    __slots__ = ("_data", "_limit")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that these bytes complete; DecodeError for a size that no frame has (era 2.1)."""
        self._data += data
        while len(self._data) >= _INT32.size:
            (size,) = _INT32.unpack_from(self._data)
            if not MIN_FRAME <= size <= self._limit:
                raise DecodeError(f"a frame of {size} bytes, allowed are {MIN_FRAME} to {self._limit}")
            end = _INT32.size + size
            if len(self._data) < end:
                return
            payload = bytes(memoryview(self._data)[_INT32.size : end])
            del self._data[:end]
            yield payload
