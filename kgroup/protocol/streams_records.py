"""Every key and value of `__consumer_offsets` that concerns streams groups (KIP-1071)."""

from typing import Annotated

from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int8, Int16, Int32, Int64, String, Tagged, UInt16


class StreamsKey(RecordKey):
    """The key of a record about a streams group."""

    __slots__ = ()


@message
class KeyValue(Struct):
    """A client tag, a setting of an internal topic, or one that a target assignment was computed with."""

    key: String = ""
    value: String = ""


@message
class StreamsGroupMetadataKey(StreamsKey):
    """A streams group."""

    TYPE = 17

    group_id: String


@message
class StreamsGroupMetadataValue(RecordValue):
    """The group epoch, and a hash of the topics that the topology needs.

    `validated_topology_epoch` is the topology epoch whose topics were all found as they must be, -1 for none.
    """

    VERSIONS = range(1)
    FLEXIBLE = 0

    epoch: Int32
    metadata_hash: Int64 = 0
    validated_topology_epoch: Annotated[Int32, Tagged(0)] = -1
    last_assignment_configs: Annotated[tuple[KeyValue, ...] | None, Tagged(1)] = ()


@message
class StreamsGroupMemberMetadataKey(StreamsKey):
    """A member of a streams group: one thread's client of one process."""

    TYPE = 19

    group_id: String
    member_id: String


@message
class Endpoint(Struct):
    """Where the process answers interactive queries."""

    host: String = ""
    port: UInt16 = 0


@message
class StreamsGroupMemberMetadataValue(RecordValue):
    """A member: its process, and the topology it runs. Times in ms."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = -1
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


@message
class StreamsGroupTargetAssignmentMetadataKey(StreamsKey):
    """The target assignment of a streams group as a whole."""

    TYPE = 20

    group_id: String


@message
class StreamsGroupTargetAssignmentMetadataValue(RecordValue):
    """The group epoch the target was computed for, and when, in ms (KIP-1263); 0 when unknown."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tagged(0)] = 0


@message
class StreamsGroupTargetAssignmentMemberKey(StreamsKey):
    """A member's part of the target assignment."""

    TYPE = 21

    group_id: String
    member_id: String


@message
class TargetTaskIds(Struct):
    """Tasks of one subtopology, by the partition they read."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()


@message
class StreamsGroupTargetAssignmentMemberValue(RecordValue):
    """The tasks the member shall have."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    active_tasks: tuple[TargetTaskIds, ...] = ()
    standby_tasks: tuple[TargetTaskIds, ...] = ()
    warmup_tasks: tuple[TargetTaskIds, ...] = ()


@message
class StreamsGroupCurrentMemberAssignmentKey(StreamsKey):
    """A member's epoch and the tasks it has now."""

    TYPE = 22

    group_id: String
    member_id: String


@message
class TaskIds(Struct):
    """Tasks of one subtopology; of active ones also the epoch in which each was assigned (KIP-1251)."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tagged(0)] = ()


@message
class StreamsGroupCurrentMemberAssignmentValue(RecordValue):
    """State: 0 stable, 1 has tasks to revoke, 2 waits for tasks that others have not released."""

    VERSIONS = range(1)
    FLEXIBLE = 0

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8 = 0
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[TaskIds, ...] = ()


@message
class StreamsGroupTopologyKey(StreamsKey):
    """The topology of a streams group."""

    TYPE = 23

    group_id: String


@message
class TopicInfo(Struct):
    """An internal topic; 0 partitions or replicas leave the number to the coordinator or the cluster."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: tuple[KeyValue, ...] = ()


@message
class CopartitionGroup(Struct):
    """Source topics that need the same number of partitions, by their places in the subtopology's lists."""

    source_topics: tuple[Int16, ...] = ()
    source_topic_regex: tuple[Int16, ...] = ()
    repartition_source_topics: tuple[Int16, ...] = ()


@message
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
    """The topics that a subtopology reads, repartition topics last."""
    return (*part.source_topics, *(topic.name for topic in part.repartition_source_topics))


@message
class StreamsGroupTopologyValue(RecordValue):
    """What the application reads, keeps and writes."""

    VERSIONS = range(1)
    FLEXIBLE = 0

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
