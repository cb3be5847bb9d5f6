"""OffsetDelete (key 47): forget a group's positions for partitions it no longer reads (KIP-496).

- 0: first version, not flexible

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, GROUP_AUTHORIZATION_FAILED, and for each partition
GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, String


@message
class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


@message
class OffsetDeleteRequestTopic(Struct):
    name: String
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


@message
class OffsetDeleteRequest(Message):
    API = 47
    VERSIONS = range(1)

    group_id: String
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


@message
class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class OffsetDeleteResponseTopic(Struct):
    name: String = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@message
class OffsetDeleteResponse(Message):
    API = 47
    VERSIONS = range(1)

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
