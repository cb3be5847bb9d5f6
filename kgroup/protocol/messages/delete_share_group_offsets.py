"""DeleteShareGroupOffsets (key 92): forget what a share group without members has read of topics (KIP-932).

Only whole topics can be named. Start offsets and delivery state of all their partitions go.

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP, INVALID_GROUP_ID, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, and for
each topic TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION (no such topic, or nothing to delete),
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, String, Uuid


@message
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = ""


@message
class DeleteShareGroupOffsetsRequest(Message):
    API = 92
    VERSIONS = range(1)
    FLEXIBLE = 0

    group_id: String = ""
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = ()


@message
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = ""
    topic_id: Uuid = bytes(16)
    error_code: Int16 = 0
    error_message: String | None = None


@message
class DeleteShareGroupOffsetsResponse(Message):
    API = 92
    VERSIONS = range(1)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = ()
