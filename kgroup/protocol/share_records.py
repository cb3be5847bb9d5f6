"""Every key and value of `__consumer_offsets` that concerns share groups (KIP-932)."""

from typing import Annotated

from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int8, Int32, Int64, String, Tagged, Uuid


class ShareKey(RecordKey):
    """The key of a record about a share group."""

    __slots__ = ()


@message
class ShareGroupMemberMetadataKey(ShareKey):
    """A member of a share group."""

    TYPE = 10

    group_id: String
    member_id: String


@message
class ShareGroupMemberMetadataValue(RecordValue):
    """A member: where it runs, and what it subscribes to."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()


@message
class ShareGroupMetadataKey(ShareKey):
    """A share group."""

    TYPE = 11

    group_id: String


@message
class ShareGroupMetadataValue(RecordValue):
    """The group epoch, and a hash of the subscribed topics' metadata."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    epoch: Int32
    metadata_hash: Int64 = 0


@message
class ShareGroupTargetAssignmentMetadataKey(ShareKey):
    """The target assignment of a share group as a whole."""

    TYPE = 12

    group_id: String


@message
class ShareGroupTargetAssignmentMetadataValue(RecordValue):
    """The group epoch the target was computed for, and when, in ms (KIP-1263); 0 when unknown."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tagged(0)] = 0


@message
class ShareGroupTargetAssignmentMemberKey(ShareKey):
    """A member's part of the target assignment."""

    TYPE = 13

    group_id: String
    member_id: String


@message
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@message
class ShareGroupTargetAssignmentMemberValue(RecordValue):
    """The partitions the member shall read; others may read them too."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class ShareGroupCurrentMemberAssignmentKey(ShareKey):
    """A member's epoch and the partitions it reads now."""

    TYPE = 14

    group_id: String
    member_id: String


@message
class ShareGroupCurrentMemberAssignmentValue(RecordValue):
    """State: 0 stable, the only one a member of a share group has."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8 = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()


@message
class ShareGroupStatePartitionMetadataKey(ShareKey):
    """Of which partitions a share group keeps delivery state."""

    TYPE = 15

    group_id: String


@message
class TopicPartitionsInfo(Struct):
    """Partitions of one topic, with its name."""

    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...] = ()


@message
class TopicInfo(Struct):
    """A topic."""

    topic_id: Uuid
    topic_name: String


@message
class ShareGroupStatePartitionMetadataValue(RecordValue):
    """Partitions whose state is being made and those whose is there; topics whose is being deleted."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()


PAIRS: tuple[tuple[type[ShareKey], type[RecordValue]], ...] = (
    (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (ShareGroupMetadataKey, ShareGroupMetadataValue),
    (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
)
"""Each key with its value."""
