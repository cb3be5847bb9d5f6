"""InitializeShareGroupState (key 83): make the state of partitions that a share group reads (KIP-932).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST,
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, Int64, String, Uuid


@message
class PartitionState(Struct):
    """A start offset of -1 leaves it to the group's setting where reading begins."""

    partition: Int32 = 0
    state_epoch: Int32 = 0
    start_offset: Int64 = 0


@message
class TopicState(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionState, ...] = ()


@message
class InitializeShareGroupStateRequest(Message):
    API = 83
    VERSIONS = range(1)
    FLEXIBLE = 0

    group_id: String = ""
    topics: tuple[TopicState, ...] = ()


@message
class PartitionResult(Struct):
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class TopicResult(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionResult, ...] = ()


@message
class InitializeShareGroupStateResponse(Message):
    API = 83
    VERSIONS = range(1)
    FLEXIBLE = 0

    results: tuple[TopicResult, ...] = ()
