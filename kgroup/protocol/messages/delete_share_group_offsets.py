"""DeleteShareGroupOffsets (key 92): forget what a share group without members has read of topics (KIP-932).

Only whole topics can be named. Start offsets and delivery state of all their partitions go.

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP, INVALID_GROUP_ID, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, and for
each topic TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION (no such topic, or nothing to delete),
KAFKA_STORAGE_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, String, Uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = ""


class DeleteShareGroupOffsetsRequest(Message, api=92, versions=range(1), flexible=0):
    group_id: String = ""
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = ()


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = ""
    topic_id: Uuid = bytes(16)
    error_code: Int16 = 0
    error_message: String | None = None


class DeleteShareGroupOffsetsResponse(Message, answers=DeleteShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = ()
