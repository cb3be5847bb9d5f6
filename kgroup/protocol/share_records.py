"""Every key and value of `__consumer_offsets` that concerns share groups (KIP-932)."""

from typing import Annotated

from kgroup.protocol.codec import Struct
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.types import Int8, Int32, Int64, String, Tagged, Uuid


class ShareKey(RecordKey):
    """The key of a record about a share group."""

    __slots__ = ()


class ShareGroupMemberMetadataKey(ShareKey, type=10):
    """A member of a share group."""

    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(RecordValue, versions=range(1), flexible=0):
    """A member: where it runs, and what it subscribes to."""

    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()


class ShareGroupMetadataKey(ShareKey, type=11):
    """A share group."""

    group_id: String


class ShareGroupMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch, and a hash of the subscribed topics' metadata."""

    epoch: Int32
    metadata_hash: Int64 = 0


class ShareGroupTargetAssignmentMetadataKey(ShareKey, type=12):
    """The target assignment of a share group as a whole."""

    group_id: String


class ShareGroupTargetAssignmentMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch the target was computed for, and when, in ms (KIP-1263); 0 when unknown."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tagged(0)] = 0


class ShareGroupTargetAssignmentMemberKey(ShareKey, type=13):
    """A member's part of the target assignment."""

    group_id: String
    member_id: String


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


class ShareGroupTargetAssignmentMemberValue(RecordValue, versions=range(1), flexible=0):
    """The partitions the member should read; others may read them too."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupCurrentMemberAssignmentKey(ShareKey, type=14):
    """A member's epoch and the partitions it reads now."""

    group_id: String
    member_id: String


class ShareGroupCurrentMemberAssignmentValue(RecordValue, versions=range(1), flexible=0):
    """State: 0 stable, the only one a member of a share group has."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8 = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupStatePartitionMetadataKey(ShareKey, type=15):
    """Of which partitions a share group keeps delivery state."""

    group_id: String


class TopicPartitionsInfo(Struct):
    """Partitions of one topic, with its name."""

    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...] = ()


class TopicInfo(Struct):
    """A topic."""

    topic_id: Uuid
    topic_name: String


class ShareGroupStatePartitionMetadataValue(RecordValue, versions=range(1), flexible=0):
    """Partitions whose state is being made and those whose is there; topics whose is being deleted."""

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
TYPES = frozenset(key.TYPE for key, _ in PAIRS)
