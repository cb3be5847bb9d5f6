"""DeleteRecords (key 21): raise the start of partitions' logs, so that older records are gone (KIP-107).

- 1: throttled after the answer is sent
- 2: flexible

Errors: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION,
INVALID_TOPIC_EXCEPTION, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String


class DeleteRecordsPartition(Struct):
    """The offset that should be the first; -1 for the high watermark."""

    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    name: String
    partitions: tuple[DeleteRecordsPartition, ...] = ()


class DeleteRecordsRequest(Message, api=21, versions=range(3), flexible=2):
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Struct):
    """The log's start afterwards; -1 with an error."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Struct):
    name: String = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


class DeleteRecordsResponse(Message, answers=DeleteRecordsRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
