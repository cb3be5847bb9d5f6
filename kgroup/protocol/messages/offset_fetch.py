"""OffsetFetch (key 9): read a group's committed positions. Offset -1 means that none is stored.

- 1: first version served
- 2: null topics mean all topics; an error for the whole group
- 3: throttle time
- 4: throttled after the answer is sent
- 5: leader epoch (KIP-320)
- 6: flexible
- 7: may insist on stable offsets, answered UNSTABLE_OFFSET_COMMIT while a transaction is open (KIP-447)
- 8: many groups at once; `groups` replaces the fields of a single one (KIP-709)
- 9: member id and epoch, checked for consumer-protocol members (KIP-848)
- 10: topic ids instead of names

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID (9), STALE_MEMBER_EPOCH (9), and for each
partition UNSTABLE_OFFSET_COMMIT (7), UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10),
TOPIC_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, Int64, NullableSince, Since, String, Until, Uuid


class OffsetFetchRequestTopic(Struct):
    """Up to version 7: a topic of the one group."""

    name: String
    partition_indexes: tuple[Int32, ...] = ()


class OffsetFetchRequestTopics(Struct):
    """From version 8: a topic of one of the groups."""

    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    partition_indexes: tuple[Int32, ...] = ()


class OffsetFetchRequestGroup(Struct):
    """From version 8: one group, with null topics for all of them."""

    group_id: String
    member_id: Annotated[String | None, Since(9)] = None
    member_epoch: Annotated[Int32, Since(9)] = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()


class OffsetFetchRequest(Message, api=9, versions=range(1, 11), flexible=6):
    group_id: Annotated[String, Until(7)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, Until(7), NullableSince(2)] = ()
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], Since(8)] = ()
    require_stable: Annotated[Bool, Since(7)] = False


class OffsetFetchResponsePartition(Struct):
    """Up to version 7."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, Since(5)] = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Struct):
    """Up to version 7."""

    name: String = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


class OffsetFetchResponsePartitions(Struct):
    """From version 8."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Struct):
    """From version 8."""

    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()


class OffsetFetchResponseGroup(Struct):
    """From version 8: one group's offsets, or why they cannot be read."""

    group_id: String = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: Int16 = 0


class OffsetFetchResponse(Message, answers=OffsetFetchRequest):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], Until(7)] = ()
    error_code: Annotated[Int16, Since(2), Until(7)] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], Since(8)] = ()
