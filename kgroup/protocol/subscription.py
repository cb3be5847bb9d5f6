"""What consumers of the classic protocol send each other through the group: subscriptions and assignments.

Both are a version and a body: JoinGroup metadata and SyncGroup assignment. As in Kafka, a version newer
than 3 is read as 3 and trailing bytes are ignored, since new versions only add at the end.

- 1: the partitions a member owns (KIP-429)
- 2: the generation in which it owned them (KIP-792)
- 3: rack (KIP-881)
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bytes, Int32, Since, String

NEWEST = 3
PROTOCOL_TYPE = "consumer"
"""The protocol type of classic groups whose members send subscriptions and get assignments."""

M = TypeVar("M", bound=Message)
_VERSION = struct.Struct(">h")


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic: String
    partitions: tuple[Int32, ...] = ()


class ConsumerProtocolSubscription(Message, versions=range(NEWEST + 1)):
    """The body of a subscription as it travels."""

    topics: tuple[String, ...] = ()
    user_data: Bytes | None = None
    owned_partitions: Annotated[tuple[TopicPartitions, ...], Since(1)] = ()
    generation_id: Annotated[Int32, Since(2)] = -1
    rack_id: Annotated[String | None, Since(3)] = None


class ConsumerProtocolAssignment(Message, versions=range(NEWEST + 1)):
    """The body of an assignment as it travels."""

    assigned_partitions: tuple[TopicPartitions, ...] = ()
    user_data: Bytes | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants and has. `generation` is -1 where unknown; `owned` belongs to that generation."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None

    def encode(self, version: int = NEWEST) -> bytes:
        """Return the bytes Kafka's consumer would send: topics and owned partitions sorted."""
        return _encode(
            ConsumerProtocolSubscription(
                topics=tuple(sorted(self.topics)),
                user_data=self.user_data,
                owned_partitions=_by_topic(sorted(self.owned)),
                generation_id=self.generation,
                rack_id=self.rack,
            ),
            version,
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the subscription in JoinGroup metadata; raises only DecodeError. No rack if empty."""
        body = _decode(ConsumerProtocolSubscription, data)
        return cls(
            body.topics,
            body.user_data,
            _flat(body.owned_partitions),
            body.generation_id,
            body.rack_id or None,
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions a member should read."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None

    def encode(self, version: int = NEWEST) -> bytes:
        """Return the bytes Kafka's consumer would send: topics in order of first appearance."""
        body = ConsumerProtocolAssignment(
            assigned_partitions=_by_topic(self.partitions), user_data=self.user_data
        )
        return _encode(body, version)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the assignment in a SyncGroup answer; raises only DecodeError, also for no bytes at all."""
        body = _decode(ConsumerProtocolAssignment, data)
        return cls(_flat(body.assigned_partitions), body.user_data)


def subscribed_topics(data: bytes) -> tuple[str, ...]:
    """Return the topics of a subscription of any version, read as version 0, with which all of them begin.

    So a group's topics are known even if later fields are cut short or unknown, as in Kafka
    (ClassicGroup.computeSubscribedTopics). Raise only DecodeError.
    """
    if len(data) < _VERSION.size:
        raise DecodeError(f"no version in {len(data)} bytes")
    return ConsumerProtocolSubscription.decode_prefix(data, _VERSION.size, 0)[0].topics


def version_of(data: bytes) -> int:
    """Return the version of a subscription or assignment, at most the newest; raises DecodeError."""
    if len(data) < _VERSION.size:
        raise DecodeError(f"no version in {len(data)} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    return min(version, NEWEST)


def _encode(body: Message, version: int) -> bytes:
    out = bytearray(_VERSION.pack(version))
    body.encode_into(out, version)
    return bytes(out)


def _decode(cls: type[M], data: bytes) -> M:
    if len(data) < 2:
        raise DecodeError(f"{cls.__name__}: cut short at {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    return cls.decode_prefix(data, 2, min(version, NEWEST))[0]


def _by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for p in partitions:
        by_topic.setdefault(p.topic, []).append(p.partition)
    return tuple(TopicPartitions(topic=t, partitions=tuple(ps)) for t, ps in by_topic.items())


def _flat(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(t.topic, p) for t in topics for p in t.partitions)
