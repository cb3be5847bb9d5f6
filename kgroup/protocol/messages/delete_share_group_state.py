"""DeleteShareGroupState (key 86): delete the state of partitions that a share group has read (KIP-932).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.initialize_share_group_state import TopicResult
from kgroup.protocol.types import Int32, String, Uuid


class PartitionIndex(Struct):
    partition: Int32 = 0


class TopicState(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionIndex, ...] = ()


class DeleteShareGroupStateRequest(Message, api=86, versions=range(1), flexible=0):
    group_id: String = ""
    topics: tuple[TopicState, ...] = ()


class DeleteShareGroupStateResponse(Message, answers=DeleteShareGroupStateRequest):
    results: tuple[TopicResult, ...] = ()
