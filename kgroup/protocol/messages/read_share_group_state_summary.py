"""ReadShareGroupStateSummary (key 87): read where partitions stand, without their batches (KIP-932).

- 0: first version
- 1: how many records from the start offset on are done with (KIP-1226)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST,
KAFKA_STORAGE_ERROR.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.read_share_group_state import TopicOfLeader
from kgroup.protocol.types import Int16, Int32, Int64, Since, String, Uuid


class ReadShareGroupStateSummaryRequest(Message, api=87, versions=range(2), flexible=0):
    group_id: String = ""
    topics: tuple[TopicOfLeader, ...] = ()


class PartitionResult(Struct):
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, Since(1)] = -1


class TopicResult(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionResult, ...] = ()


class ReadShareGroupStateSummaryResponse(Message, answers=ReadShareGroupStateSummaryRequest):
    results: tuple[TopicResult, ...] = ()
