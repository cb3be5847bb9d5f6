"""Bytes of the messages: one encoder and one decoder for each value that several carry (era 2.1 to 2.7)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from kgroup.errors import DecodeError, KgroupError
from kgroup.zookeeper.wire.messages import (
    Broker,
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    CommitOffsetResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FromConsumer,
    FromCoordinator,
    Message,
    Offsets,
    Ownership,
    PartitionAndOffset,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    Registered,
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
        key = _REQUESTS.get(type(message))
        try:
            if key is None:
                if self.header:
                    out.int32(correlation)
                if type(message) in _TYPED_ANSWERS:
                    out.int16(_TYPED_ANSWERS[type(message)])
            else:
                out.int16(key)
                if self.header:
                    out.int16(HEADER_VERSION)
                    out.int32(correlation)
                    out.string(self.client_id)
            _write(out, message)
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
                if key not in _ANSWERS_OF_CONSUMERS:
                    raise DecodeError(f"type {key} is no answer")
            elif key not in _REQUESTS_OF_CONSUMERS:
                raise DecodeError(f"type {key} is no request")
        else:
            key = reader.int16()
        message = _read_from_consumer(reader, key, self.commit)
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
            message = _read_awaited(reader, awaiting)
        else:
            message = _read_from_coordinator(reader, reader.int16() if key is None else key, self.commit)
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


_REQUESTS: dict[type, RequestKey] = {
    ClusterMetadataRequest: RequestKey.CLUSTER_METADATA,
    RegisterConsumerRequest: RequestKey.REGISTER_CONSUMER,
    PingRequest: RequestKey.PING,
    StopFetcherRequest: RequestKey.STOP_FETCHER,
    StartFetcherRequest: RequestKey.START_FETCHER,
    CommitOffsetRequest: RequestKey.COMMIT_OFFSET,
    DescribeGroupRequest: RequestKey.DESCRIBE_GROUP,
}
_TYPED_ANSWERS: dict[type, RequestKey] = {
    PingResponse: RequestKey.PING,
    StopFetcherResponse: RequestKey.STOP_FETCHER,
    StartFetcherResponse: RequestKey.START_FETCHER,
    CommitOffsetResponse: RequestKey.COMMIT_OFFSET,
    DescribeGroupResponse: RequestKey.DESCRIBE_GROUP,
}
_REQUESTS_OF_CONSUMERS = {
    RequestKey.CLUSTER_METADATA,
    RequestKey.REGISTER_CONSUMER,
    RequestKey.COMMIT_OFFSET,
    RequestKey.DESCRIBE_GROUP,
}
_ANSWERS_OF_CONSUMERS = {RequestKey.PING, RequestKey.STOP_FETCHER, RequestKey.START_FETCHER}


def _write(out: Writer, message: Message) -> None:
    match message:
        case ClusterMetadataRequest():
            pass
        case ClusterMetadataResponse(error, coordinator_id, brokers):
            out.int16(error)
            out.int32(coordinator_id)
            _write_brokers(out, brokers)
        case RegisterConsumerRequest():
            _write_registration(out, message)
        case RegisterConsumerResponse(error):
            out.int16(error)
        case PingRequest(consumer_id, num_retries):
            out.string(consumer_id)
            out.int32(num_retries)
        case PingResponse(error, consumer_id, offsets) | StopFetcherResponse(error, consumer_id, offsets):
            _write_confirmation(out, error, consumer_id)
            if offsets is not None:
                _write_offsets(out, offsets)
        case StopFetcherRequest(consumer_id):
            out.string(consumer_id)
        case StartFetcherRequest(consumer_id, ownership, brokers):
            out.string(consumer_id)
            out.int16(len(ownership))
            for thread_id, partitions in ownership:
                out.string(thread_id)
                _write_offsets(out, partitions)
            _write_brokers(out, brokers)
        case StartFetcherResponse(error, consumer_id) | CommitOffsetResponse(error, consumer_id):
            _write_confirmation(out, error, consumer_id)
        case CommitOffsetRequest(consumer_id, offsets):
            out.string(consumer_id)
            _write_offsets(out, offsets)
        case DescribeGroupRequest(group_id, after):
            out.string(group_id)
            out.string(after)
        case DescribeGroupResponse():
            _write_description(out, message)


def _write_registration(out: Writer, request: RegisterConsumerRequest) -> None:
    out.string(request.group_id)
    out.string(request.consumer_id)
    out.string(request.topic_count)
    out.boolean(request.auto_commit)
    out.string(request.auto_offset_reset)
    out.int32(request.session_timeout_ms)


def _write_description(out: Writer, answer: DescribeGroupResponse) -> None:
    out.int16(answer.error)
    out.string(answer.state)
    out.boolean(answer.more)
    out.int16(len(answer.members))
    for member in answer.members:
        out.string(member.consumer_id)
        out.string(member.topic_count)
        out.boolean(member.auto_commit)
        out.boolean(member.started)
        out.int32(member.session_timeout_ms)
        out.int32(member.failed)
        out.int32(member.held)


def _write_confirmation(out: Writer, error: int, consumer_id: str) -> None:
    out.int16(error)
    out.string(consumer_id)


def _write_brokers(out: Writer, brokers: tuple[Broker, ...]) -> None:
    out.int16(len(brokers))
    for broker in brokers:
        out.int32(broker.id)
        out.string(broker.host)
        out.int32(broker.port)


def _write_offsets(out: Writer, offsets: Offsets) -> None:
    out.int16(len(offsets))
    for topic, partition, offset in offsets:
        out.string(topic)
        out.string(partition)
        out.int64(offset)


def _read_from_consumer(reader: Reader, key: int, commit: bool) -> FromConsumer:
    match key:
        case RequestKey.CLUSTER_METADATA:
            return ClusterMetadataRequest()
        case RequestKey.REGISTER_CONSUMER:
            return RegisterConsumerRequest(
                reader.string(),
                reader.string(),
                reader.string(),
                reader.boolean(),
                reader.string(),
                reader.int32(),
            )
        case RequestKey.PING:
            return PingResponse(reader.int16(), reader.string(), _read_offsets_if_any(reader))
        case RequestKey.STOP_FETCHER:
            return StopFetcherResponse(reader.int16(), reader.string(), _read_offsets_if_any(reader))
        case RequestKey.START_FETCHER:
            return StartFetcherResponse(reader.int16(), reader.string())
        case RequestKey.COMMIT_OFFSET if commit:
            return CommitOffsetRequest(reader.string(), _read_offsets(reader))
        case RequestKey.DESCRIBE_GROUP:
            return DescribeGroupRequest(reader.string(), reader.string())
    raise DecodeError(f"no consumer sends type {key}")


def _read_awaited(reader: Reader, awaiting: Awaiting) -> FromCoordinator:
    if awaiting is Awaiting.METADATA:
        return ClusterMetadataResponse(reader.int16(), reader.int32(), _read_brokers(reader))
    return RegisterConsumerResponse(reader.int16())


def _read_from_coordinator(reader: Reader, key: int, commit: bool) -> FromCoordinator:
    match key:
        case RequestKey.PING:
            return PingRequest(reader.string(), reader.int32())
        case RequestKey.STOP_FETCHER:
            return StopFetcherRequest(reader.string())
        case RequestKey.START_FETCHER:
            consumer_id = reader.string()
            ownership = tuple(
                Ownership(reader.string(), _read_offsets(reader)) for _ in range(reader.count(4))
            )
            return StartFetcherRequest(consumer_id, ownership, _read_brokers(reader))
        case RequestKey.COMMIT_OFFSET if commit:
            return CommitOffsetResponse(reader.int16(), reader.string())
        case RequestKey.DESCRIBE_GROUP:
            error, state, more = reader.int16(), reader.string(), reader.boolean()
            return DescribeGroupResponse(error, state, more, _read_registered(reader))
    raise DecodeError(f"no coordinator sends type {key}")


def _read_brokers(reader: Reader) -> tuple[Broker, ...]:
    count = reader.count(10)
    return tuple(Broker(reader.int32(), reader.string(), reader.int32()) for _ in range(count))


def _read_registered(reader: Reader) -> tuple[Registered, ...]:
    return tuple(
        Registered(
            reader.string(),
            reader.string(),
            reader.boolean(),
            reader.boolean(),
            reader.int32(),
            reader.int32(),
            reader.int32(),
        )
        for _ in range(reader.count(18))
    )


def _read_offsets(reader: Reader) -> Offsets:
    count = reader.count(12)
    return tuple(PartitionAndOffset(reader.string(), reader.string(), reader.int64()) for _ in range(count))


def _read_offsets_if_any(reader: Reader) -> Offsets | None:
    """With auto-commit off the count is left out too: nothing left says so (era 2.6)."""
    return _read_offsets(reader) if reader.left else None
