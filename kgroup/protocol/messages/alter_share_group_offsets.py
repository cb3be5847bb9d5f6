"""AlterShareGroupOffsets (key 91): set where a share group without members begins to read (KIP-932).

What was delivered and acknowledged beyond the start offset is forgotten. A group that does not exist is made.

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND (a group
of another type), NON_EMPTY_GROUP, INVALID_GROUP_ID, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED,
UNSUPPORTED_VERSION, and for each partition TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String, Uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32 = 0
    start_offset: Int64 = 0


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = ""
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = ()


class AlterShareGroupOffsetsRequest(Message, api=91, versions=range(1), flexible=0):
    group_id: String = ""
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = ()


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = ""
    topic_id: Uuid = bytes(16)
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...] = ()


class AlterShareGroupOffsetsResponse(Message, answers=AlterShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = ()
