"""DescribeQuorum (key 55): replicas of a partition under Raft, and when each was seen (KIP-595).

- 0: first version
- 1: the leader's time of each replica's last fetch (KIP-836)
- 2: replicas' directories, nodes with their listeners (KIP-853)

Errors: CLUSTER_AUTHORIZATION_FAILED, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String, UInt16, Uuid


class QuorumPartitionRequest(Struct):
    partition_index: Int32 = 0


class QuorumTopicRequest(Struct):
    topic_name: String
    partitions: tuple[QuorumPartitionRequest, ...] = ()


class DescribeQuorumRequest(Message, api=55, versions=range(3), flexible=0):
    topics: tuple[QuorumTopicRequest, ...] = ()


class QuorumReplica(Struct):
    """A replica; the leader's `last_caught_up_timestamp` is its time now, unknown ones are -1 (ms)."""

    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, Since(2)] = bytes(16)
    log_end_offset: Int64 = -1
    last_fetch_timestamp: Annotated[Int64, Since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, Since(1)] = -1


class QuorumPartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, Since(2)] = None
    leader_id: Int32 = -1
    leader_epoch: Int32 = 0
    high_watermark: Int64 = -1
    current_voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()


class QuorumTopic(Struct):
    topic_name: String
    partitions: tuple[QuorumPartition, ...] = ()


class QuorumListener(Struct):
    name: String
    host: String = ""
    port: UInt16 = 0


class QuorumNode(Struct):
    node_id: Int32 = 0
    listeners: tuple[QuorumListener, ...] = ()


class DescribeQuorumResponse(Message, answers=DescribeQuorumRequest):
    error_code: Int16 = 0
    error_message: Annotated[String | None, Since(2)] = None
    topics: tuple[QuorumTopic, ...] = ()
    nodes: Annotated[tuple[QuorumNode, ...], Since(2)] = ()
