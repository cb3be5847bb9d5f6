"""Messages: dataclasses whose annotations are compiled, once per version, into a reader and a writer.

The generated functions are straight-line code: fixed-width neighbours share one `struct` call and
nested structs are inlined into their loops. Same bytes as Kafka's own generated classes
(Kafka protocol guide; KIP-482 for flexible versions and tagged fields).
"""

import struct
from collections.abc import Callable
from typing import ClassVar, Self, TypeVar

from kgroup.errors import DecodeError
from kgroup.protocol.structs import NEVER_FLEXIBLE, Reader, Writer
from kgroup.protocol.structs import Struct as Struct

F = TypeVar("F", Reader, Writer)


class Message(Struct):
    """A request, response, or record key or value with versions of its own."""

    __slots__ = ()
    API: ClassVar[int] = -1
    VERSIONS: ClassVar[range]
    FLEXIBLE: ClassVar[int] = NEVER_FLEXIBLE

    def encode(self, version: int) -> bytes:
        """Return the body's bytes in `version`.

        ValueError for a version the message does not have, and for a number or length that does not fit.
        A field that the version does not have is omitted, whatever its value.
        """
        out = bytearray()
        self.encode_into(out, version)
        return bytes(out)

    def encode_into(self, out: bytearray, version: int) -> None:
        """Append the body's bytes in `version` to `out`; raises as `encode` does."""
        write = self.WRITERS.get(version) or writer_of(type(self), version)
        try:
            write(self, out)
        except struct.error as error:
            raise ValueError(f"{type(self).__name__} v{version}: {error}") from None

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Return the message in `data`, all of it; raises only DecodeError, whatever the bytes."""
        value, end = cls.decode_prefix(data, 0, version)
        if end != len(data):
            raise DecodeError(f"{cls.__name__} v{version} ends at byte {end} of {len(data)}")
        return value

    @classmethod
    def decode_prefix(cls, data: bytes, start: int, version: int) -> tuple[Self, int]:
        """Return the message that starts at `start`, and the position behind it; raises only DecodeError."""
        read = cls.READERS.get(version)
        if read is None:
            try:
                read = reader_of(cls, version)
            except ValueError as error:
                raise DecodeError(str(error)) from None
        try:
            return read(data, start, len(data))
        except DecodeError as error:
            raise DecodeError(f"{cls.__name__} v{version}: {error.message}") from None
        except (struct.error, IndexError):
            raise DecodeError(f"{cls.__name__} v{version}: cut short at {len(data)} bytes") from None
        except UnicodeDecodeError as error:
            raise DecodeError(f"{cls.__name__} v{version}: a string is not UTF-8: {error.reason}") from None


def writer_of(cls: type[Message], version: int) -> Writer:
    """Return the compiled writer of a message in `version`, made on first use; ValueError without one."""
    from kgroup.protocol.compiler import compile_writer

    return _kept(cls, version, cls.WRITERS, compile_writer)


def reader_of(cls: type[Message], version: int) -> Reader:
    """Return the compiled reader of a message in `version`, made on first use; ValueError without one."""
    from kgroup.protocol.compiler import compile_reader

    return _kept(cls, version, cls.READERS, compile_reader)


def _kept(
    cls: type[Message], version: int, made: dict[int, F], compiled: Callable[[type[Message], int, bool], F]
) -> F:
    function = made.get(version)
    if function is None:
        if version not in cls.VERSIONS:
            first, last = cls.VERSIONS[0], cls.VERSIONS[-1]
            raise ValueError(f"{cls.__name__} has no version {version} (only {first} to {last})")
        function = made[version] = compiled(cls, version, version >= cls.FLEXIBLE)
    return function
