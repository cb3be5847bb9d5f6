"""DescribeTopicPartitions (key 75): partitions with their eligible leader replicas, page by page (KIP-966).

- 0: first version

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, String, Uuid


class TopicRequest(Struct):
    name: String


class RequestCursor(Struct):
    """Where to go on: a topic and the first partition wanted."""

    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsRequest(Message, api=75, versions=range(1), flexible=0):
    topics: tuple[TopicRequest, ...] = ()
    response_partition_limit: Int32 = 2000
    cursor: RequestCursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...] = ()


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16 = 0
    name: String | None = None
    topic_id: Uuid = bytes(16)
    is_internal: Bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: Int32 = -(1 << 31)


class ResponseCursor(Struct):
    """Where the next page begins; null on the last one."""

    topic_name: String = ""
    partition_index: Int32 = 0


class DescribeTopicPartitionsResponse(Message, answers=DescribeTopicPartitionsRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: ResponseCursor | None = None
