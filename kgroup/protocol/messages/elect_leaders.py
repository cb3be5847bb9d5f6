"""ElectLeaders (key 43): make the preferred replica of partitions their leader.

- 1: election types (KIP-460), error of the whole request
- 2: flexible

Errors: ELECTION_NOT_NEEDED, UNKNOWN_TOPIC_OR_PARTITION, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE, INVALID_REQUEST, NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int8, Int16, Int32, Since, String


@message
class TopicPartitions(Struct):
    topic: String
    partitions: tuple[Int32, ...] = ()


@message
class ElectLeadersRequest(Message):
    """Type 0 elects the preferred replica, 1 any that is alive; no topics means all."""

    API = 43
    VERSIONS = range(3)
    FLEXIBLE = 2

    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: Int32 = 60000


@message
class PartitionResult(Struct):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class ReplicaElectionResult(Struct):
    topic: String = ""
    partition_result: tuple[PartitionResult, ...] = ()


@message
class ElectLeadersResponse(Message):
    API = 43
    VERSIONS = range(3)
    FLEXIBLE = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
