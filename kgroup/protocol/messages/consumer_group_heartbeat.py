"""ConsumerGroupHeartbeat (key 68): join, stay in, and leave a group of the consumer protocol (KIP-848).

Member epoch 0 joins, -1 leaves, -2 leaves for a while as a static member. A field that is null (or -1, the
rebalance timeout) has not changed since the last heartbeat; a null assignment in the answer likewise.

- 0: the coordinator may choose the member id
- 1: subscription by regular expression; the client chooses its member id (KIP-1082)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
UNSUPPORTED_ASSIGNOR, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND,
UNSUPPORTED_VERSION, INVALID_REGULAR_EXPRESSION (1).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct, message
from kgroup.protocol.types import Int16, Int32, Since, String, Uuid


@message
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@message
class ConsumerGroupHeartbeatRequest(Message):
    API = 68
    VERSIONS = range(2)
    FLEXIBLE = 0

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[String, ...] | None = None
    subscribed_topic_regex: Annotated[String | None, Since(1)] = None
    server_assignor: String | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


@message
class Assignment(Struct):
    """All the partitions the member may use now."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class ConsumerGroupHeartbeatResponse(Message):
    API = 68
    VERSIONS = range(2)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
