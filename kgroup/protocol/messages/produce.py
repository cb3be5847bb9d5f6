"""Produce (key 0): append record batches to partitions.

- 3: first version served; transactional id
- 4: may answer KAFKA_STORAGE_ERROR
- 5: log start offset in the answer
- 7: records may be compressed with zstd (KIP-110)
- 8: which records of a refused batch were at fault, and why (KIP-467)
- 9: flexible
- 10: the current leader and its address come with NOT_LEADER_OR_FOLLOWER (KIP-951)
- 11: may answer TRANSACTION_ABORTABLE (KIP-890)
- 12: adds the partition to the transaction by itself (KIP-890)
- 13: topic ids instead of names (KIP-516)

Kafka lists versions 0 to 2 in its ApiVersions answer for librdkafka's sake, and refuses them.

Errors: CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (13), NOT_LEADER_OR_FOLLOWER,
MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TOPIC_EXCEPTION, NOT_ENOUGH_REPLICAS,
NOT_ENOUGH_REPLICAS_AFTER_APPEND, INVALID_REQUIRED_ACKS, INVALID_TIMESTAMP, INVALID_RECORD,
TOPIC_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED,
UNSUPPORTED_COMPRESSION_TYPE, KAFKA_STORAGE_ERROR, OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER,
UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_ABORTABLE (11).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from kgroup.protocol.types import Int16, Int32, Int64, Records, Since, String, Tagged, Until, Uuid


class PartitionProduceData(Struct):
    """The record batches for one partition."""

    index: Int32
    records: Records | None = None


class TopicProduceData(Struct):
    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = bytes(16)
    partition_data: tuple[PartitionProduceData, ...] = ()


class ProduceRequest(Message, api=0, versions=range(3, 14), flexible=9):
    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...] = ()


class BatchIndexAndErrorMessage(Struct):
    """A record that made its batch be refused."""

    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


class PartitionProduceResponse(Struct):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], Since(8)] = ()
    error_message: Annotated[String | None, Since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, Since(10), Tagged(0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Struct):
    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = bytes(16)
    partition_responses: tuple[PartitionProduceResponse, ...] = ()


class ProduceResponse(Message, answers=ProduceRequest):
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Since(10), Tagged(0)] = ()
