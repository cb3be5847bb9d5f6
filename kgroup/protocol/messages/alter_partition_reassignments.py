"""AlterPartitionReassignments (key 45): move partitions to other brokers, or give a move up (KIP-455).

- 1: may forbid that the number of replicas changes (KIP-860)

Errors: NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR (1),
UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, Since, String


class ReassignablePartition(Struct):
    """The brokers that should hold the partition; None gives up the move that is under way."""

    partition_index: Int32
    replicas: tuple[Int32, ...] | None = None


class ReassignableTopic(Struct):
    name: String
    partitions: tuple[ReassignablePartition, ...] = ()


class AlterPartitionReassignmentsRequest(Message, api=45, versions=range(2), flexible=0):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, Since(1)] = True
    topics: tuple[ReassignableTopic, ...] = ()


class ReassignablePartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class ReassignableTopicResponse(Struct):
    name: String = ""
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


class AlterPartitionReassignmentsResponse(Message, answers=AlterPartitionReassignmentsRequest):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, Since(1)] = True
    error_code: Int16 = 0
    error_message: String | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
