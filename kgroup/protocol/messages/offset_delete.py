"""OffsetDelete (key 47): forget a group's positions for partitions it no longer reads (KIP-496).

- 0: first version, not flexible

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, GROUP_AUTHORIZATION_FAILED, and for each partition
GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, String


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


class OffsetDeleteRequestTopic(Struct):
    name: String
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


class OffsetDeleteRequest(Message, api=47, versions=range(1)):
    group_id: String
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Struct):
    name: String = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


class OffsetDeleteResponse(Message, answers=OffsetDeleteRequest):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
