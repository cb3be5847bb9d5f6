"""WriteShareGroupState (key 85): store what has changed in the state of partitions (KIP-932).

- 0: first version
- 1: how many records from the start offset on are done with (KIP-1226)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
INVALID_REQUEST, KAFKA_STORAGE_ERROR.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.initialize_share_group_state import TopicResult
from kgroup.protocol.share_state_records import StateBatch
from kgroup.protocol.types import Int32, Int64, Since, String, Uuid


class PartitionState(Struct):
    """A start offset of -1 has not changed."""

    partition: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, Since(1)] = -1
    state_batches: tuple[StateBatch, ...] = ()


class TopicState(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionState, ...] = ()


class WriteShareGroupStateRequest(Message, api=85, versions=range(2), flexible=0):
    group_id: String = ""
    topics: tuple[TopicState, ...] = ()


class WriteShareGroupStateResponse(Message, answers=WriteShareGroupStateRequest):
    results: tuple[TopicResult, ...] = ()
