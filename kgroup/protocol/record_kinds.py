"""The common parts of all keys and values of a coordinator's topic."""

import struct
from collections.abc import Iterable
from typing import ClassVar, Protocol

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message

_INT16 = struct.Struct(">h")


class RecordKey(Message):
    """A key; `TYPE` is the int16 it begins with."""

    __slots__ = ()
    TYPE: ClassVar[int]
    VERSIONS = range(1)


class RecordValue(Message):
    """A value; `WRITTEN` is the version Kafka 4.3.1 writes."""

    __slots__ = ()
    WRITTEN: ClassVar[int] = 0

    def written_version(self) -> int:
        """Return the version Kafka 4.3.1 would write this very value in."""
        return self.WRITTEN


class ListedEpochs(Protocol):
    """Partitions of a topic, or tasks of a subtopology, each with the epoch of its assignment (KIP-1251)."""

    @property
    def partitions(self) -> tuple[int, ...]: ...
    @property
    def assignment_epochs(self) -> tuple[int, ...] | None: ...


def epochs_in(listed: ListedEpochs, default: int) -> Iterable[tuple[int, int]]:
    """Return each number with its epoch; `default` if a record has none (AE-20), or too few (AE-23)."""
    epochs = listed.assignment_epochs
    if epochs is None or len(epochs) != len(listed.partitions):
        return ((number, default) for number in listed.partitions)
    return zip(listed.partitions, epochs, strict=True)


def leading_int16(data: bytes, what: str) -> int:
    """Return the type a key begins with, or the version of a value; DecodeError where neither is there."""
    if len(data) < 2:
        raise DecodeError(f"record {what}: cut short at {len(data)} bytes")
    number: int = _INT16.unpack_from(data)[0]
    return number
