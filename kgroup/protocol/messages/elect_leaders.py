"""ElectLeaders (key 43): make the preferred replica of partitions their leader.

- 1: election types (KIP-460), error of the whole request
- 2: flexible

Errors: ELECTION_NOT_NEEDED, UNKNOWN_TOPIC_OR_PARTITION, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE, INVALID_REQUEST, NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, Since, String


class TopicPartitions(Struct):
    topic: String
    partitions: tuple[Int32, ...] = ()


class ElectLeadersRequest(Message, api=43, versions=range(3), flexible=2):
    """Type 0 elects the preferred replica, 1 any that is alive; no topics means all."""

    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: Int32 = 60000


class PartitionResult(Struct):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class ReplicaElectionResult(Struct):
    topic: String = ""
    partition_result: tuple[PartitionResult, ...] = ()


class ElectLeadersResponse(Message, answers=ElectLeadersRequest):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
