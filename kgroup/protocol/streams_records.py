"""Every key and value of `__consumer_offsets` that concerns streams groups (KIP-1071)."""

from typing import Annotated

from kgroup.protocol.codec import Struct
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.types import Int8, Int16, Int32, Int64, String, Tagged, UInt16


class StreamsKey(RecordKey):
    """The key of a record about a streams group."""

    __slots__ = ()


class KeyValue(Struct):
    """A client tag, a setting of an internal topic, or one that a target assignment was computed with."""

    key: String = ""
    value: String = ""


class StreamsGroupMetadataKey(StreamsKey, type=17):
    """A streams group."""

    group_id: String


class StreamsGroupMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch, and a hash of the topics that the topology needs.

    `validated_topology_epoch` is the topology epoch whose topics were all found as they must be, -1 for none.
    Of the topology's description (KIP-1331): the epoch whose description a plugin stores (-1: none;
    -2: an update of it was interrupted), and the one that the plugin refused for good (-1: none).
    """

    epoch: Int32
    metadata_hash: Int64 = 0
    validated_topology_epoch: Annotated[Int32, Tagged(0)] = -1
    last_assignment_configs: Annotated[tuple[KeyValue, ...] | None, Tagged(1)] = ()
    stored_description_topology_epoch: Annotated[Int32, Tagged(2)] = -1
    failed_description_topology_epoch: Annotated[Int32, Tagged(3)] = -1


class StreamsGroupMemberMetadataKey(StreamsKey, type=19):
    """A member of a streams group: one thread's client of one process."""

    group_id: String
    member_id: String


class Endpoint(Struct):
    """Where the process answers interactive queries."""

    host: String = ""
    port: UInt16 = 0


class StreamsGroupMemberMetadataValue(RecordValue, versions=range(1), flexible=0):
    """A member: its process, and the topology it runs. Times in ms."""

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = -1
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


class StreamsGroupTargetAssignmentMetadataKey(StreamsKey, type=20):
    """The target assignment of a streams group as a whole."""

    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(RecordValue, versions=range(1), flexible=0):
    """The group epoch the target was computed for, and when, in ms (KIP-1263); 0 when unknown."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tagged(0)] = 0


class StreamsGroupTargetAssignmentMemberKey(StreamsKey, type=21):
    """A member's part of the target assignment."""

    group_id: String
    member_id: String


class TargetTaskIds(Struct):
    """Tasks of one subtopology, by the partition they read."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()


class StreamsGroupTargetAssignmentMemberValue(RecordValue, versions=range(1), flexible=0):
    """The tasks the member should have."""

    active_tasks: tuple[TargetTaskIds, ...] = ()
    standby_tasks: tuple[TargetTaskIds, ...] = ()
    warmup_tasks: tuple[TargetTaskIds, ...] = ()


class StreamsGroupCurrentMemberAssignmentKey(StreamsKey, type=22):
    """A member's epoch and the tasks it has now."""

    group_id: String
    member_id: String


class TaskIds(Struct):
    """Tasks of one subtopology; of active ones also the epoch in which each was assigned (KIP-1251)."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tagged(0)] = ()


class StreamsGroupCurrentMemberAssignmentValue(RecordValue, versions=range(1), flexible=0):
    """State: 0 stable, 1 has tasks to revoke, 2 waits for tasks that others have not released."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8 = 0
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[TaskIds, ...] = ()


class StreamsGroupTopologyKey(StreamsKey, type=23):
    """The topology of a streams group."""

    group_id: String


class TopicInfo(Struct):
    """An internal topic; 0 partitions or replicas leave the number to the coordinator or the cluster."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: tuple[KeyValue, ...] = ()


class CopartitionGroup(Struct):
    """Source topics that need the same number of partitions, by their places in the subtopology's lists."""

    source_topics: tuple[Int16, ...] = ()
    source_topic_regex: tuple[Int16, ...] = ()
    repartition_source_topics: tuple[Int16, ...] = ()


class Subtopology(Struct):
    """A part of the topology that runs as tasks of its own."""

    subtopology_id: String = ""
    source_topics: tuple[String, ...] = ()
    source_topic_regex: tuple[String, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[String, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


def sources_of(part: Subtopology) -> tuple[str, ...]:
    """Return the topics that a subtopology reads, repartition topics last."""
    return (*part.source_topics, *(topic.name for topic in part.repartition_source_topics))


class StreamsGroupTopologyValue(RecordValue, versions=range(1), flexible=0):
    """What the application reads, keeps and writes."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...] = ()


PAIRS: tuple[tuple[type[StreamsKey], type[RecordValue]], ...] = (
    (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
)
"""Each key with its value."""
