"""WriteTxnMarkers (key 27): ends a transaction on the brokers that hold its records.

- 1: first version served; flexible
- 2: the transaction's version (KIP-1228)

Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
TRANSACTION_COORDINATOR_FENCED, COORDINATOR_LOAD_IN_PROGRESS, NOT_ENOUGH_REPLICAS,
NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE,
CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Int64, Since, String


class WritableTxnMarkerTopic(Struct):
    name: String
    partition_indexes: tuple[Int32, ...] = ()


class WritableTxnMarker(Struct):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, Since(2)] = 0


class WriteTxnMarkersRequest(Message, api=27, versions=range(1, 3), flexible=1):
    markers: tuple[WritableTxnMarker, ...] = ()


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Struct):
    name: String = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Struct):
    producer_id: Int64 = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


class WriteTxnMarkersResponse(Message, answers=WriteTxnMarkersRequest):
    markers: tuple[WritableTxnMarkerResult, ...] = ()
