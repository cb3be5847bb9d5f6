"""Bytes of the messages, as their fields declare them (era 2.1 to 2.7)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from kgroup.errors import DecodeError, KgroupError
from kgroup.zookeeper.wire.messages import (
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    CommitOffsetResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FromConsumer,
    FromCoordinator,
    Int16,
    Int64,
    Message,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    RequestKey,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)
from kgroup.zookeeper.wire.primitives import Reader, Writer, framed

HEADER_VERSION = 0
MAX_CORRELATION = 0xFFFF
"""Below 0x50000 no correlation begins as a type does: so requests and answers are told apart (era 10.1)."""


class Unencodable(KgroupError):
    """A message that the layout has no room for: a list or a text of more than 32767."""


class Awaiting(Enum):
    """What the next frame to a consumer is, if it carries no type (era 2.5)."""

    NOTHING = "nothing"
    METADATA = "metadata"
    REGISTRATION = "registration"


@dataclass(frozen=True, slots=True)
class Wire:
    """How a cluster speaks: `header` adds 0.8's fields to all, `commit` allows type 10 (era 10.1, 10.2)."""

    header: bool = False
    commit: bool = False
    client_id: str = "kgroup"

    def encode(self, message: Message, correlation: int = 0) -> bytes:
        """The whole frame, its size in front; `correlation`, up to MAX_CORRELATION, is for header mode."""
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

    def from_consumer(self, payload: bytes) -> tuple[FromConsumer, int]:
        """What a consumer sent, and its correlation; raises DecodeError for anything else."""
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
        if key not in _FROM_CONSUMER or (key == RequestKey.COMMIT_OFFSET and not self.commit):
            raise DecodeError(f"no consumer sends type {key}")
        message = _LAYOUTS[_FROM_CONSUMER[key]].read(reader)
        reader.end()
        return message, correlation

    def from_coordinator(self, payload: bytes, awaiting: Awaiting) -> tuple[FromCoordinator, int]:
        """What a coordinator sent, and its correlation; raises DecodeError for anything else."""
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
            if key not in _FROM_COORDINATOR or (key == RequestKey.COMMIT_OFFSET and not self.commit):
                raise DecodeError(f"no coordinator sends type {key}")
            kind = _FROM_COORDINATOR[key]
        message = _LAYOUTS[kind].read(reader)
        reader.end()
        return message, correlation

    def _header(self, reader: Reader) -> tuple[int | None, int]:
        """The type of a request, or None for an answer; and the correlation."""
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


_FROM_CONSUMER: dict[int, type[FromConsumer]] = {
    RequestKey.CLUSTER_METADATA: ClusterMetadataRequest,
    RequestKey.REGISTER_CONSUMER: RegisterConsumerRequest,
    RequestKey.PING: PingResponse,
    RequestKey.STOP_FETCHER: StopFetcherResponse,
    RequestKey.START_FETCHER: StartFetcherResponse,
    RequestKey.COMMIT_OFFSET: CommitOffsetRequest,
    RequestKey.DESCRIBE_GROUP: DescribeGroupRequest,
}
_FROM_COORDINATOR: dict[int, type[FromCoordinator]] = {
    RequestKey.PING: PingRequest,
    RequestKey.STOP_FETCHER: StopFetcherRequest,
    RequestKey.START_FETCHER: StartFetcherRequest,
    RequestKey.COMMIT_OFFSET: CommitOffsetResponse,
    RequestKey.DESCRIBE_GROUP: DescribeGroupResponse,
}
_AWAITED: dict[Awaiting, type[FromCoordinator]] = {
    Awaiting.METADATA: ClusterMetadataResponse,
    Awaiting.REGISTRATION: RegisterConsumerResponse,
}
_KEYS = {kind: key for sent in (_FROM_CONSUMER, _FROM_COORDINATOR) for key, kind in sent.items()}
_ASKED_BY_COORDINATORS = {RequestKey.PING, RequestKey.STOP_FETCHER, RequestKey.START_FETCHER}
_REQUESTS = {
    *(kind for key, kind in _FROM_CONSUMER.items() if key not in _ASKED_BY_COORDINATORS),
    *(kind for key, kind in _FROM_COORDINATOR.items() if key in _ASKED_BY_COORDINATORS),
}


class Layout(NamedTuple):
    """How a value lies on the wire, in `least` bytes or more."""

    write: Callable[[Writer, Any], None]
    read: Callable[[Reader], Any]
    least: int


_PLAIN: dict[object, Layout] = {
    Int16: Layout(Writer.int16, Reader.int16, 2),
    int: Layout(Writer.int32, Reader.int32, 4),
    Int64: Layout(Writer.int64, Reader.int64, 8),
    bool: Layout(Writer.boolean, Reader.boolean, 1),
    str: Layout(Writer.string, Reader.string, 2),
}


def _layout_of(kind: Any) -> Layout:
    """The layout of a type: a message's or a tuple's fields in order, an int16 in front of a list's items."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if get_origin(kind) is UnionType:
        return _left_out(_layout_of(get_args(kind)[0]))
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


def _left_out(whole: Layout) -> Layout:
    """None is no bytes at all, so that nothing left says None (era 2.6)."""
    return Layout(
        lambda out, value: None if value is None else whole.write(out, value),
        lambda reader: whole.read(reader) if reader.left else None,
        0,
    )


_LAYOUTS = {kind: _layout_of(kind) for kind in (*_KEYS, *_AWAITED.values())}
