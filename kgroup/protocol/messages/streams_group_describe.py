"""StreamsGroupDescribe (key 89): state, topology and members of streams groups (KIP-1071).

- 0: first version
- 1: the description of the topology (KIP-1331), the assignor (KIP-1357)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.streams_records import Endpoint, KeyValue, TopicInfo
from kgroup.protocol.topology_description import TopologyDescription
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Int64, Since, String


class StreamsGroupDescribeRequest(Message, api=89, versions=range(2), flexible=0):
    group_ids: tuple[String, ...] = ()
    include_authorized_operations: Bool = False
    include_topology_description: Annotated[Bool, Since(1)] = False


class Subtopology(Struct):
    subtopology_id: String = ""
    source_topics: tuple[String, ...] = ()
    repartition_sink_topics: tuple[String, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()


class Topology(Struct):
    epoch: Int32 = 0
    subtopologies: tuple[Subtopology, ...] | None = None


class TaskOffset(Struct):
    """How far a task has come."""

    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()


class Assignment(Struct):
    """The tasks assigned to a member."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class Member(Struct):
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    task_offsets: tuple[TaskOffset, ...] = ()
    task_end_offsets: tuple[TaskOffset, ...] = ()
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    is_classic: Bool = False


class DescribedGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: Topology | None = None
    members: tuple[Member, ...] = ()
    authorized_operations: Int32 = -(1 << 31)
    topology_description: Annotated[TopologyDescription | None, Since(1)] = None
    topology_description_status: Annotated[Int8, Since(1)] = 0
    assignor_name: Annotated[String | None, Since(1)] = None


class StreamsGroupDescribeResponse(Message, answers=StreamsGroupDescribeRequest):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...] = ()
