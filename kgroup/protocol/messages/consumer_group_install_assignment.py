"""ConsumerGroupInstallAssignment (key 10002): make a member's computation the group's target (KIP-848).

Follows ConsumerGroupPrepareAssignment; key and layout are kgroup's own, as no released Kafka has them.

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_AUTHORIZATION_FAILED,
GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID (also for a member that was not chosen), STALE_MEMBER_EPOCH, and
INVALID_ASSIGNMENT for one that does not fit what was handed out.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bytes, Int8, Int16, Int32, String, Uuid

INVALID_ASSIGNMENT = 10001
"""Error code of an assignment that does not fit; Kafka never gave it a number."""


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


class Member(Struct):
    """What one member should get; a non-zero error is the assignor's own and reaches the member."""

    member_id: String
    topic_partitions: tuple[TopicPartitions, ...] = ()
    error: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


class ConsumerGroupInstallAssignmentRequest(Message, api=10002, versions=range(1), flexible=0):
    """`group_epoch` is the one the assignment was computed for; a non-zero error says that it failed."""

    group_id: String
    member_id: String
    member_epoch: Int32
    group_epoch: Int32
    error: Int8 = 0
    members: tuple[Member, ...] = ()


class ConsumerGroupInstallAssignmentResponse(Message, answers=ConsumerGroupInstallAssignmentRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
