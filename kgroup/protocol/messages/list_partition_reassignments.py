"""ListPartitionReassignments (key 46): the partitions that are being moved (KIP-455).

Errors: NOT_CONTROLLER, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, String


class ListPartitionReassignmentsTopics(Struct):
    name: String
    partition_indexes: tuple[Int32, ...] = ()


class ListPartitionReassignmentsRequest(Message, api=46, versions=range(1), flexible=0):
    """No topics (None) means all."""

    timeout_ms: Int32 = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None


class OngoingPartitionReassignment(Struct):
    partition_index: Int32 = 0
    replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    removing_replicas: tuple[Int32, ...] = ()


class OngoingTopicReassignment(Struct):
    name: String = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


class ListPartitionReassignmentsResponse(Message, answers=ListPartitionReassignmentsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
