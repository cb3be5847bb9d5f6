"""Every key and value of `__consumer_offsets` that concerns classic and consumer groups; all, to decode.

A key is its type (int16) and its fields; a value is its version (int16) and its fields; no value is a
tombstone.

A control batch (the end of a transaction) has keys that begin like type 0: never decode its records here.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from kgroup.protocol.codec import Message, Struct, writer_of
from kgroup.protocol.record_kinds import RecordKey, RecordValue, leading_int16
from kgroup.protocol.share_records import PAIRS as SHARE_PAIRS
from kgroup.protocol.streams_records import PAIRS as STREAMS_PAIRS
from kgroup.protocol.types import Absent, Bytes, Int8, Int16, Int32, Int64, Since, String, Tagged, Until, Uuid


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """The key of a record type kgroup does not read; `raw` is all of it, the type included."""

    type: int
    raw: bytes


class LegacyOffsetCommitKey(RecordKey, type=0):
    """Written before Kafka 0.8.3; means the same as `OffsetCommitKey`."""

    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(RecordValue, versions=range(1)):
    """Times in ms."""

    offset: Int64
    metadata: String = ""
    commit_timestamp: Int64 = -1


class OffsetCommitKey(RecordKey, type=1):
    """A group's position in one partition."""

    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(RecordValue, versions=range(5), flexible=4, written=4):
    """Leader epoch and expiry are -1 when unset; times in ms.

    - 1: a time of expiry, in this version only
    - 3: leader epoch (KIP-320)
    - 4: flexible; topic id
    """

    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: String = ""
    commit_timestamp: Int64 = -1
    expire_timestamp: Annotated[Int64, Since(1), Until(1)] = -1
    topic_id: Annotated[Uuid, Since(4), Tagged(0)] = bytes(16)

    def written_version(self) -> int:
        """Version 1 where there is a time of expiry to keep, else 4."""
        return 4 if self.expire_timestamp == -1 else 1


class GroupMetadataKey(RecordKey, type=2):
    """A classic group."""

    group: String


class MemberMetadata(Struct):
    """A member of a classic group; a rebalance timeout of -1 means the session timeout. Times in ms."""

    member_id: String
    group_instance_id: Annotated[String | None, Since(3)] = None
    client_id: String
    client_host: String
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32
    subscription: Bytes = b""
    assignment: Bytes = b""


class GroupMetadataValue(RecordValue, versions=range(5), flexible=4, written=3):
    """All of a classic group as its last completed rebalance left it.

    - 1: rebalance timeouts
    - 2: when the state changed last
    - 3: group instance ids (KIP-345)
    - 4: flexible
    """

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = None
    leader: String | None = None
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: tuple[MemberMetadata, ...] = ()


class ConsumerGroupMetadataKey(RecordKey, type=3):
    """A consumer group."""

    group_id: String


class ConsumerGroupMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch, and a hash of the subscribed topics' metadata (KIP-1101), 0 when there is none."""

    epoch: Int32
    metadata_hash: Annotated[Int64, Tagged(0)] = 0


class ConsumerGroupPartitionMetadataKey(RecordKey, type=4):
    """Topic metadata of a consumer group; since Kafka 4.1 only its tombstones are written."""

    group_id: String


class PartitionMetadata(Struct):
    """The racks of one partition's replicas."""

    partition: Int32
    racks: tuple[String, ...] = ()


class TopicMetadata(Struct):
    """A subscribed topic as it was when the group epoch was raised."""

    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[PartitionMetadata, ...] = ()


class ConsumerGroupPartitionMetadataValue(RecordValue, versions=range(1), flexible=0):
    """What Kafka 4.0 kept to notice changed topics."""

    topics: tuple[TopicMetadata, ...] = ()


class ConsumerGroupMemberMetadataKey(RecordKey, type=5):
    """A member of a consumer group: what it subscribes to."""

    group_id: String
    member_id: String


class ClassicProtocol(Struct):
    """A protocol a classic member supports, with its subscription."""

    name: String
    metadata: Bytes = b""


class ClassicMemberMetadata(Struct):
    """What a member that speaks the classic protocol adds; most wanted protocol first."""

    session_timeout_ms: Int32 = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


class ClientAssignor(Struct):
    """A client-side assignor a member offers (KIP-848)."""

    name: String
    minimum_version: Int16 = 0
    maximum_version: Int16 = 0
    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


class ConsumerGroupMemberMetadataValue(RecordValue, versions=range(1), flexible=0):
    """A member; `classic_member_metadata` is None for one that speaks the consumer protocol.

    Left out on the wire, the classic metadata is an empty struct, not null (so Kafka's generated code):
    hence every consumer-protocol member carries an explicit null. `client_assignors` is kgroup's own,
    under a tag that Kafka skips.
    """

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...] = ()
    subscribed_topic_regex: String | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = None
    classic_member_metadata: Annotated[
        ClassicMemberMetadata | None, Tagged(0), Absent(ClassicMemberMetadata())
    ] = None
    client_assignors: Annotated[tuple[ClientAssignor, ...], Tagged(10000)] = ()


class ConsumerGroupTargetAssignmentMetadataKey(RecordKey, type=6):
    """The target assignment of a consumer group as a whole."""

    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch the target was computed for, and when, in ms (KIP-1263); 0 when unknown."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tagged(0)] = 0


class ConsumerGroupTargetAssignmentMemberKey(RecordKey, type=7):
    """A member's part of the target assignment."""

    group_id: String
    member_id: String


class TargetTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


class ConsumerGroupTargetAssignmentMemberValue(RecordValue, versions=range(1), flexible=0):
    """What the member should own; the tagged fields are a client-side assignor's, and Kafka skips them."""

    topic_partitions: tuple[TargetTopicPartitions, ...] = ()
    error: Annotated[Int8, Tagged(10000)] = 0
    metadata_version: Annotated[Int16, Tagged(10001)] = 0
    metadata_bytes: Annotated[Bytes, Tagged(10002)] = b""


class ConsumerGroupCurrentMemberAssignmentKey(RecordKey, type=8):
    """A member's epoch and what it owns now."""

    group_id: String
    member_id: String


class TopicPartitions(Struct):
    """Partitions of one topic, and the epoch in which each was assigned, in the same order (KIP-1251).

    Kafka 4.3.1 always writes the epochs; without them (before 4.3, or null) every partition has the
    member's epoch.
    """

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tagged(0)] = ()


class ConsumerGroupCurrentMemberAssignmentValue(RecordValue, versions=range(1), flexible=0):
    """State: 0 stable, 1 has partitions to revoke, 2 waits for partitions others have not released."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8 = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[TopicPartitions, ...] = ()


class ConsumerGroupRegularExpressionKey(RecordKey, type=16):
    """A regular expression that members of a consumer group subscribe with."""

    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(RecordValue, versions=range(1), flexible=0):
    """The topics it matched, the metadata version it was matched against, and when, in ms."""

    topics: tuple[String, ...] = ()
    version: Int64
    timestamp: Int64


_ALL: tuple[tuple[type[RecordKey], type[RecordValue]], ...] = (
    (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    *SHARE_PAIRS,
    *STREAMS_PAIRS,
)
_PAIRS = {key.TYPE: (key, value) for key, value in _ALL}
TYPE_NAMES = {kind: key.__name__.removesuffix("Key") for kind, (key, _) in sorted(_PAIRS.items())}
"""Kafka's record types; 9 and 18 are not in use."""

_INT16 = struct.Struct(">h")


def group_of(key: RecordKey) -> str:
    """Return the id of the group a key belongs to."""
    name: str = key.group_id if hasattr(key, "group_id") else key.group  # type: ignore[attr-defined]
    return name


def record_classes() -> dict[int, tuple[type[RecordKey], type[RecordValue]]]:
    """Return the key and value class of every record type read and written here."""
    return dict(_PAIRS)


def decode_key(data: bytes) -> RecordKey | UnknownKey:
    """Return the key in `data`, ignoring bytes behind it as Kafka does; raises only DecodeError."""
    pair = _PAIRS.get(kind := leading_int16(data, "key"))
    if pair is None:
        return UnknownKey(kind, data)
    return pair[0].decode_prefix(data, 2, 0)[0]


def decode_value(key: RecordKey, data: bytes | None) -> RecordValue | None:
    """Return the value that goes with `key`, None for a tombstone; raises only DecodeError.

    A version newer than those known is a DecodeError, as in Kafka, which refuses to load the partition.
    """
    if data is None:
        return None
    version = leading_int16(data, "value")
    return _PAIRS[key.TYPE][1].decode_prefix(data, 2, version)[0]


def encode_key(key: RecordKey | UnknownKey) -> bytes:
    """Return the key's bytes, its type first."""
    if isinstance(key, UnknownKey):
        return key.raw
    return _encoded(key, 0, key.TYPE)


def encode_value(value: RecordValue | None, version: int | None = None) -> bytes | None:
    """Return the value's bytes, version first (default: Kafka 4.3.1's). None stays None."""
    if value is None:
        return None
    if version is None:
        version = value.written_version()
    return _encoded(value, version, version)


_ENCODERS: dict[tuple[type[Message], int], tuple[bytes, Callable[[Message, bytearray], None]]] = {}
"""The int16 that a key or value begins with, and the writer of the rest: commits write many."""


def _encoded(part: Message, version: int, lead: int) -> bytes:
    """Return a key or value in `version` behind the int16 it begins with."""
    encoder = _ENCODERS.get((type(part), version))
    if encoder is None:
        encoder = _ENCODERS[type(part), version] = (_INT16.pack(lead), writer_of(type(part), version))
    begin, write = encoder
    out = bytearray(begin)
    write(part, out)
    return bytes(out)
