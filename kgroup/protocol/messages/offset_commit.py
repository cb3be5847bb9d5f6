"""OffsetCommit (key 8): store a group's positions.

- 2: first version served
- 3: throttle time
- 4: throttled after the answer is sent
- 5: retention is the broker's alone
- 6: leader epoch of the committed position (KIP-320)
- 7: group instance id (KIP-345)
- 8: flexible
- 9: also for consumer-protocol members, whose epoch stands where the generation stood (KIP-848)
- 10: topic ids instead of names

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (10),
OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND (9), STALE_MEMBER_EPOCH (9),
UNSUPPORTED_VERSION.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String, Until, Uuid


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: String | None = None


class OffsetCommitRequestTopic(Struct):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()


class OffsetCommitRequest(Message, api=8, versions=range(2, 11), flexible=8):
    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: Annotated[String | None, Since(7)] = None
    retention_time_ms: Annotated[Int64, Until(4)] = -1
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Struct):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


class OffsetCommitResponse(Message, answers=OffsetCommitRequest):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
