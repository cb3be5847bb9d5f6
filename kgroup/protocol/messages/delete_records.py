"""DeleteRecords (key 21): raise the start of partitions' logs, so that older records are gone (KIP-107).

- 1: throttled after the answer is sent
- 2: flexible

Errors: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION,
INVALID_TOPIC_EXCEPTION, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message
from kgroup.protocol.structs import Struct, message
from kgroup.protocol.types import Int16, Int32, Int64, String


@message
class DeleteRecordsPartition(Struct):
    """The offset that shall be the first; -1 for the high watermark."""

    partition_index: Int32
    offset: Int64


@message
class DeleteRecordsTopic(Struct):
    name: String
    partitions: tuple[DeleteRecordsPartition, ...] = ()


@message
class DeleteRecordsRequest(Message):
    API = 21
    VERSIONS = range(3)
    FLEXIBLE = 2

    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: Int32 = 0


@message
class DeleteRecordsPartitionResult(Struct):
    """The log's start afterwards; -1 with an error."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


@message
class DeleteRecordsTopicResult(Struct):
    name: String = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


@message
class DeleteRecordsResponse(Message):
    API = 21
    VERSIONS = range(3)
    FLEXIBLE = 2

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
