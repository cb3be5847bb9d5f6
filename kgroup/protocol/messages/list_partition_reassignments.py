"""ListPartitionReassignments (key 46): the partitions that are being moved (KIP-455).

Errors: NOT_CONTROLLER, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, String


@message
class ListPartitionReassignmentsTopics(Struct):
    name: String
    partition_indexes: tuple[Int32, ...] = ()


@message
class ListPartitionReassignmentsRequest(Message):
    """No topics (None) means all."""

    API = 46
    VERSIONS = range(1)
    FLEXIBLE = 0

    timeout_ms: Int32 = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None


@message
class OngoingPartitionReassignment(Struct):
    partition_index: Int32 = 0
    replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    removing_replicas: tuple[Int32, ...] = ()


@message
class OngoingTopicReassignment(Struct):
    name: String = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


@message
class ListPartitionReassignmentsResponse(Message):
    API = 46
    VERSIONS = range(1)
    FLEXIBLE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
