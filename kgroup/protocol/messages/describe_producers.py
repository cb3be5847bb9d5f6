"""DescribeProducers (key 61): a partition's producers and open transactions (KIP-664).

- 0: first version

Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_TOPIC_EXCEPTION,
TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String


class TopicRequest(Struct):
    name: String
    partition_indexes: tuple[Int32, ...] = ()


class DescribeProducersRequest(Message, api=61, versions=range(1), flexible=0):
    topics: tuple[TopicRequest, ...] = ()


class ProducerState(Struct):
    """A producer; `current_txn_start_offset` is -1 when no transaction is open."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicResponse(Struct):
    name: String = ""
    partitions: tuple[PartitionResponse, ...] = ()


class DescribeProducersResponse(Message, answers=DescribeProducersRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResponse, ...] = ()
