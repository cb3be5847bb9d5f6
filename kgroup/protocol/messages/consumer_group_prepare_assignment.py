"""ConsumerGroupPrepareAssignment (key 10001): what a member needs to compute an assignment (KIP-848).

KIP-848 describes client-side assignors, and no released Kafka has them: key and layout are kgroup's own, far
above Kafka's keys. The coordinator names the member in a heartbeat's answer (`should_compute_assignment`).

- 0: first version

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_AUTHORIZATION_FAILED,
GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID (also for a member that was not chosen), STALE_MEMBER_EPOCH,
UNSUPPORTED_ASSIGNOR (the members have no assignor in common any more).
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bytes, Int8, Int16, Int32, String, Uuid


class ConsumerGroupPrepareAssignmentRequest(Message, api=10001, versions=range(1), flexible=0):
    group_id: String
    member_id: String
    member_epoch: Int32


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


class Member(Struct):
    """A member, what its assignor says of itself, and its present target."""

    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    subscribed_topic_names: tuple[String, ...] = ()
    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""
    topic_partitions: tuple[TopicPartitions, ...] = ()


class TopicMetadata(Struct):
    """A topic some member subscribes to."""

    topic_id: Uuid
    topic_name: String
    num_partitions: Int32


class ConsumerGroupPrepareAssignmentResponse(Message, answers=ConsumerGroupPrepareAssignmentRequest):
    """`group_epoch` is the one to quote when the assignment is installed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    group_epoch: Int32 = 0
    assignor_name: String = ""
    members: tuple[Member, ...] = ()
    topics: tuple[TopicMetadata, ...] = ()
