"""ShareGroupHeartbeat (key 76): join, stay in, and leave a share group (KIP-932).

Member epoch 0 joins, -1 leaves. A field that is null has not changed since the last heartbeat; a null
assignment in the answer likewise.

- 1: first version served

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID,
FENCED_MEMBER_EPOCH, GROUP_MAX_SIZE_REACHED, UNSUPPORTED_VERSION.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.share_records import TopicPartitions
from kgroup.protocol.types import Int16, Int32, String


class ShareGroupHeartbeatRequest(Message, api=76, versions=range(1, 2), flexible=0):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    rack_id: String | None = None
    subscribed_topic_names: tuple[String, ...] | None = None


class Assignment(Struct):
    """The partitions the member reads."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupHeartbeatResponse(Message, answers=ShareGroupHeartbeatRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
