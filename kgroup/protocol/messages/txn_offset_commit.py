"""TxnOffsetCommit (key 28): store a group's positions as part of a transaction.

- 1: throttled after the answer is sent
- 2: leader epoch of the position (KIP-320)
- 3: flexible; generation, member id and instance id, checked against the group (KIP-447)
- 4: may answer TRANSACTION_ABORTABLE (KIP-890)
- 5: adds the group to the transaction by itself (KIP-890)
- 6: topics by id, no names (KIP-1319)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, INVALID_PRODUCER_EPOCH,
INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, UNKNOWN_MEMBER_ID (3),
ILLEGAL_GENERATION (3), FENCED_INSTANCE_ID (3), TRANSACTION_ABORTABLE (4), GROUP_ID_NOT_FOUND (6),
STALE_MEMBER_EPOCH (6), UNKNOWN_TOPIC_ID (6).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String, Until, Uuid


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(2)] = -1
    committed_metadata: String | None = None


class TxnOffsetCommitRequestTopic(Struct):
    name: Annotated[String, Until(5)] = ""
    topic_id: Annotated[Uuid, Since(6)] = bytes(16)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


class TxnOffsetCommitRequest(Message, api=28, versions=range(7), flexible=3):
    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Annotated[Int32, Since(3)] = -1
    member_id: Annotated[String, Since(3)] = ""
    group_instance_id: Annotated[String | None, Since(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Struct):
    name: Annotated[String, Until(5)] = ""
    topic_id: Annotated[Uuid, Since(6)] = bytes(16)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


class TxnOffsetCommitResponse(Message, answers=TxnOffsetCommitRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
