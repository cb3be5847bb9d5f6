"""ConsumerGroupDescribe (key 69): state, members and assignments of consumer-protocol groups (KIP-848).

- 1: member type: -1 unknown, 0 classic, 1 consumer (KIP-1099)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for a group of another type), GROUP_AUTHORIZATION_FAILED,
TOPIC_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Since, String, Uuid


class ConsumerGroupDescribeRequest(Message, api=69, versions=range(2), flexible=0):
    group_ids: tuple[String, ...] = ()
    include_authorized_operations: Bool = False


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid = bytes(16)
    topic_name: String = ""
    partitions: tuple[Int32, ...] = ()


class Assignment(Struct):
    """The partitions assigned to a member."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


class Member(Struct):
    """A member: what it has, and what it should have."""

    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()
    subscribed_topic_regex: String | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: Annotated[Int8, Since(1)] = -1


class DescribedGroup(Struct):
    """One group, or why it cannot be described."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: tuple[Member, ...] = ()
    authorized_operations: Int32 = -(1 << 31)


class ConsumerGroupDescribeResponse(Message, answers=ConsumerGroupDescribeRequest):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...] = ()
