"""StreamsGroupHeartbeat (key 88): join, stay in, and leave a streams group (KIP-1071).

Member epoch 0 joins and brings the topology, -1 leaves. A field that is null (or -1, the rebalance timeout)
has not changed since the last heartbeat; null tasks in the answer likewise.

- 0: first version
- 1: a lag of 64 bits, a request for the description of the topology (KIP-1331)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND,
UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED,
STREAMS_INVALID_TOPOLOGY, STREAMS_INVALID_TOPOLOGY_EPOCH, STREAMS_TOPOLOGY_FENCED, UNSUPPORTED_VERSION.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.streams_records import Endpoint, KeyValue, Subtopology
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Int64, Since, String, Until


class Topology(Struct):
    """What the application reads, keeps and writes; in the record of it the same."""

    epoch: Int32 = 0
    subtopologies: tuple[Subtopology, ...] = ()


class TaskIds(Struct):
    """Tasks of one subtopology, by the partition they read."""

    subtopology_id: String = ""
    partitions: tuple[Int32, ...] = ()


class TaskOffset(Struct):
    """How far a task's changelog has come."""

    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


class StreamsGroupHeartbeatRequest(Message, api=88, versions=range(2), flexible=0):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    endpoint_information_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: String | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: Bool = False


class Status(Struct):
    """Something that holds for the group, by `streams.statuses`, and its detail."""

    status_code: Int8 = 0
    status_detail: String = ""


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: String = ""
    partitions: tuple[Int32, ...] = ()


class EndpointToPartitions(Struct):
    """What the process behind an endpoint has at hand for interactive queries."""

    user_endpoint: Endpoint = Endpoint()
    active_partitions: tuple[TopicPartition, ...] = ()
    standby_partitions: tuple[TopicPartition, ...] = ()


class StreamsGroupHeartbeatResponse(Message, answers=StreamsGroupHeartbeatRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag_legacy: Annotated[Int32, Until(0)] = 0
    task_offset_interval_ms: Int32 = 0
    acceptable_recovery_lag: Annotated[Int64, Since(1)] = -1
    status: tuple[Status, ...] | None = ()
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    topology_description_required: Annotated[Bool, Since(1)] = False
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = None
