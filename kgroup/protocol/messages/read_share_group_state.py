"""ReadShareGroupState (key 84): read the state of partitions, as the leader of an epoch (KIP-932).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST,
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.share_state_records import StateBatch
from kgroup.protocol.types import Int16, Int32, Int64, String, Uuid


class PartitionOfLeader(Struct):
    partition: Int32 = 0
    leader_epoch: Int32 = 0


class TopicOfLeader(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionOfLeader, ...] = ()


class ReadShareGroupStateRequest(Message, api=84, versions=range(1), flexible=0):
    group_id: String = ""
    topics: tuple[TopicOfLeader, ...] = ()


class PartitionResult(Struct):
    """A start offset of -1 is not yet set."""

    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    state_batches: tuple[StateBatch, ...] = ()


class TopicResult(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionResult, ...] = ()


class ReadShareGroupStateResponse(Message, answers=ReadShareGroupStateRequest):
    results: tuple[TopicResult, ...] = ()
