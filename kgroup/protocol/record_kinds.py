"""What every key and every value of `__consumer_offsets` is."""

from typing import ClassVar

from kgroup.protocol.codec import Message


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
        """The version Kafka 4.3.1 would write this very value in."""
        return self.WRITTEN
