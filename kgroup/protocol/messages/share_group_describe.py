"""ShareGroupDescribe (key 77): state and members of share groups (KIP-932).

- 1: first version served

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, String, Uuid


class ShareGroupDescribeRequest(Message, api=77, versions=range(1, 2), flexible=0):
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
    member_id: String = ""
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()
    assignment: Assignment = Assignment()


class DescribedGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: tuple[Member, ...] = ()
    authorized_operations: Int32 = -(1 << 31)


class ShareGroupDescribeResponse(Message, answers=ShareGroupDescribeRequest):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...] = ()
