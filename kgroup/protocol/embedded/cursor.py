"""Reads bytes as Java's DataOutputStream writes them; every step raises only DecodeError."""

from kgroup.errors import DecodeError


class Cursor:
    """A position in bytes that moves on with every read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """Return `size` bytes."""
        if not 0 <= size <= self.left:
            raise DecodeError(f"{size} bytes wanted at byte {self._at}, {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def count(self, least: int) -> int:
        """Return how many items follow that take at least `least` bytes each: no more than fit."""
        number = self.int32()
        if not 0 <= number * least <= self.left:
            raise DecodeError(f"{number} items before byte {self._at}, {self.left} bytes left")
        return number

    def utf(self) -> str:
        """Return a string as writeUTF writes it: its length in two bytes, and UTF-8."""
        return _text(self.take(int.from_bytes(self.take(2), "big")), "utf-8")

    def chars(self) -> str:
        """Return a string as a count and Java's chars."""
        return _text(self.take(2 * self.count(2)), "utf-16-be")


def _text(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string is not {encoding.upper()}: {error.reason}") from None
