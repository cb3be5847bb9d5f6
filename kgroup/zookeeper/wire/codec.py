"""Encoding of the messages, as their fields declare it (era 2.1 to 2.7)."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from kgroup.errors import DecodeError, KgroupError
from kgroup.zookeeper.wire import messages

MIN_FRAME = 2
MAX_FRAME = 1024 * 1024

_INT16, _INT32, _INT64, _UINT16 = (struct.Struct(f">{kind}") for kind in "hiqH")


class Writer:
    """Appends values; `struct.error` for a number or a length that its field cannot hold."""

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
    """Reads values from one frame; raises only DecodeError, for bytes that are not what was asked for."""

    __slots__ = ("_data", "_pos")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    @property
    def left(self) -> int:
        """The number of unread bytes."""
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
        """Return the number of items that follow, each of at least `least_size` bytes."""
        count = self.int16()
        if count < 0 or count * least_size > self.left:
            raise DecodeError(f"{count} items before byte {self._pos}, {self.left} bytes left")
        return count

    def end(self) -> None:
        """Raise DecodeError unless everything has been read."""
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
    """Return the payload with its size in front."""
    return _INT32.pack(len(out.data)) + bytes(out.data)


class Frames:
    """Cuts a stream into frames, however its bytes arrive; holds at most one frame of `limit` bytes."""

    __slots__ = ("_data", "_limit")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the payloads that these bytes complete; DecodeError for an impossible size (era 2.1)."""
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


HEADER_VERSION = 0
MAX_CORRELATION = 0xFFFF
"""Below 0x50000 no correlation starts like a type: this separates requests from answers (era 10.1)."""


class Unencodable(KgroupError):
    """A message that the layout cannot hold: a list or a text longer than 32767."""


class Awaiting(Enum):
    """What the next frame to a consumer is, if it has no type (era 2.5)."""

    NOTHING = "nothing"
    METADATA = "metadata"
    REGISTRATION = "registration"


@dataclass(frozen=True, slots=True)
class Wire:
    """A cluster's protocol: `header` adds 0.8's fields to all, `commit` allows type 10 (era 10.1, 10.2)."""

    header: bool = False
    commit: bool = False
    client_id: str = "kgroup"

    def encode(self, message: messages.Message, correlation: int = 0) -> bytes:
        """Return the frame, its size in front; `correlation`, up to MAX_CORRELATION, is for header mode."""
        out = Writer()
        kind = type(message)
        key = _KEYS.get(kind)
        try:
            if key is not None and kind in _REQUESTS:
                out.int16(key)
                if self.header:
                    out.int16(HEADER_VERSION)
                    out.int32(correlation)
                    out.string(self.client_id)
            else:
                if self.header:
                    out.int32(correlation)
                if key is not None:
                    out.int16(key)
            _LAYOUTS[kind].write(out, message)
        except struct.error as error:
            raise Unencodable(f"{type(message).__name__} does not fit its layout: {error}") from None
        return framed(out)

    def from_consumer(self, payload: bytes) -> tuple[messages.FromConsumer, int]:
        """Return what a consumer sent, and its correlation; raises DecodeError for anything else."""
        reader = Reader(payload)
        correlation = 0
        if self.header:
            key, correlation = self._header(reader)
            if key is None:
                key = reader.int16()
                if key not in _ASKED_BY_COORDINATORS:
                    raise DecodeError(f"type {key} is no answer")
            elif key in _ASKED_BY_COORDINATORS:
                raise DecodeError(f"type {key} is no request")
        else:
            key = reader.int16()
        if key not in _FROM_CONSUMER or (key == messages.RequestKey.COMMIT_OFFSET and not self.commit):
            raise DecodeError(f"no consumer sends type {key}")
        message = _LAYOUTS[_FROM_CONSUMER[key]].read(reader)
        reader.end()
        return message, correlation

    def from_coordinator(self, payload: bytes, awaiting: Awaiting) -> tuple[messages.FromCoordinator, int]:
        """Return what a coordinator sent, and its correlation; raises DecodeError for anything else."""
        reader = Reader(payload)
        correlation, key = 0, None
        if self.header:
            key, correlation = self._header(reader)
            untyped = key is None and awaiting is not Awaiting.NOTHING
        else:
            untyped = awaiting is not Awaiting.NOTHING
        if untyped:
            kind = _AWAITED[awaiting]
        else:
            key = reader.int16() if key is None else key
            if key not in _FROM_COORDINATOR or (key == messages.RequestKey.COMMIT_OFFSET and not self.commit):
                raise DecodeError(f"no coordinator sends type {key}")
            kind = _FROM_COORDINATOR[key]
        message = _LAYOUTS[kind].read(reader)
        reader.end()
        return message, correlation

    def _header(self, reader: Reader) -> tuple[int | None, int]:
        """Return the type of a request, or None for an answer; and the correlation."""
        first = reader.int16()
        if first == 0:
            return None, reader.uint16()
        version = reader.int16()
        if version != HEADER_VERSION:
            raise DecodeError(f"version {version} of type {first} is unknown")
        correlation = reader.int32()
        if not 0 <= correlation <= MAX_CORRELATION:
            raise DecodeError(f"correlation {correlation} is not within 0 and {MAX_CORRELATION}")
        reader.nullable_string()
        return first, correlation


_FROM_CONSUMER: dict[int, type[messages.FromConsumer]] = {
    messages.RequestKey.CLUSTER_METADATA: messages.ClusterMetadataRequest,
    messages.RequestKey.REGISTER_CONSUMER: messages.RegisterConsumerRequest,
    messages.RequestKey.PING: messages.PingResponse,
    messages.RequestKey.STOP_FETCHER: messages.StopFetcherResponse,
    messages.RequestKey.START_FETCHER: messages.StartFetcherResponse,
    messages.RequestKey.COMMIT_OFFSET: messages.CommitOffsetRequest,
    messages.RequestKey.DESCRIBE_GROUP: messages.DescribeGroupRequest,
}
_FROM_COORDINATOR: dict[int, type[messages.FromCoordinator]] = {
    messages.RequestKey.PING: messages.PingRequest,
    messages.RequestKey.STOP_FETCHER: messages.StopFetcherRequest,
    messages.RequestKey.START_FETCHER: messages.StartFetcherRequest,
    messages.RequestKey.COMMIT_OFFSET: messages.CommitOffsetResponse,
    messages.RequestKey.DESCRIBE_GROUP: messages.DescribeGroupResponse,
}
_AWAITED: dict[Awaiting, type[messages.FromCoordinator]] = {
    Awaiting.METADATA: messages.ClusterMetadataResponse,
    Awaiting.REGISTRATION: messages.RegisterConsumerResponse,
}
_KEYS = {kind: key for sent in (_FROM_CONSUMER, _FROM_COORDINATOR) for key, kind in sent.items()}
_ASKED_BY_COORDINATORS = {
    messages.RequestKey.PING,
    messages.RequestKey.STOP_FETCHER,
    messages.RequestKey.START_FETCHER,
}
_REQUESTS = {
    *(kind for key, kind in _FROM_CONSUMER.items() if key not in _ASKED_BY_COORDINATORS),
    *(kind for key, kind in _FROM_COORDINATOR.items() if key in _ASKED_BY_COORDINATORS),
}


class Layout(NamedTuple):
    """How a value lies on the wire, in at least `least` bytes."""

    write: Callable[[Writer, Any], None]
    read: Callable[[Reader], Any]
    least: int


_PLAIN: dict[object, Layout] = {
    messages.Int16: Layout(Writer.int16, Reader.int16, 2),
    int: Layout(Writer.int32, Reader.int32, 4),
    messages.Int64: Layout(Writer.int64, Reader.int64, 8),
    bool: Layout(Writer.boolean, Reader.boolean, 1),
    str: Layout(Writer.string, Reader.string, 2),
}


def _layout_of(kind: Any) -> Layout:
    """Return a type's layout: a message's or tuple's fields in order, an int16 before a list's items."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if get_origin(kind) is UnionType:
        # None is written as no bytes, so an empty rest reads as None (era 2.6).
        whole = _layout_of(get_args(kind)[0])
        return Layout(
            lambda out, value: None if value is None else whole.write(out, value),
            lambda reader: whole.read(reader) if reader.left else None,
            0,
        )
    if get_origin(kind) is tuple:
        return _list_of(_layout_of(get_args(kind)[0]))
    fields = {name: _layout_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    writes = [(name, field.write) for name, field in fields.items()]
    reads = [field.read for field in fields.values()]

    def write(out: Writer, value: object) -> None:
        for name, field in writes:
            field(out, getattr(value, name))

    def read(reader: Reader) -> object:
        return kind(*[field(reader) for field in reads])

    return Layout(write, read, sum(field.least for field in fields.values()))


def _list_of(item: Layout) -> Layout:
    write_item, read_item, least = item

    def write(out: Writer, values: tuple[object, ...]) -> None:
        out.int16(len(values))
        for value in values:
            write_item(out, value)

    def read(reader: Reader) -> tuple[object, ...]:
        return tuple([read_item(reader) for _ in range(reader.count(least))])

    return Layout(write, read, 2)


_LAYOUTS = {kind: _layout_of(kind) for kind in (*_KEYS, *_AWAITED.values())}
