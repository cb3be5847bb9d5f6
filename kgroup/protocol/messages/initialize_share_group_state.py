"""InitializeShareGroupState (key 83): make the state of partitions that a share group reads (KIP-932).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST,
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String, Uuid


class PartitionState(Struct):
    """A start offset of -1 leaves it to the group's setting where reading begins."""

    partition: Int32 = 0
    state_epoch: Int32 = 0
    start_offset: Int64 = 0


class TopicState(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionState, ...] = ()


class InitializeShareGroupStateRequest(Message, api=83, versions=range(1), flexible=0):
    group_id: String = ""
    topics: tuple[TopicState, ...] = ()


class PartitionResult(Struct):
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class TopicResult(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionResult, ...] = ()


class InitializeShareGroupStateResponse(Message, answers=InitializeShareGroupStateRequest):
    results: tuple[TopicResult, ...] = ()
