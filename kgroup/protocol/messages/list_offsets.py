"""ListOffsets (key 2): the offset that belongs to a time, or to one end of a log.

Timestamps below zero have a meaning: -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local,
-5 latest tiered, -6 earliest waiting for upload.

- 1: first version served; one offset a partition
- 2: isolation level; throttle time
- 3: throttled after the answer is sent
- 4: leader epochs (KIP-320)
- 5: may answer OFFSET_NOT_AVAILABLE
- 6: flexible
- 7: timestamp -3 (KIP-734)
- 8: timestamp -4 (KIP-405)
- 9: timestamp -5 (KIP-1005)
- 10: timeout for tiered storage (KIP-1075)
- 11: timestamp -6 (KIP-1023)

Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE, FENCED_LEADER_EPOCH,
UNKNOWN_LEADER_EPOCH, LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE (5), UNSUPPORTED_FOR_MESSAGE_FORMAT,
TOPIC_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT (10), INVALID_REQUEST.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, Int64, Since, String


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64


class ListOffsetsTopic(Struct):
    name: String
    partitions: tuple[ListOffsetsPartition, ...] = ()


class ListOffsetsRequest(Message, api=2, versions=range(1, 12), flexible=6):
    replica_id: Int32
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: Annotated[Int32, Since(10)] = 0


class ListOffsetsPartitionResponse(Struct):
    """Offset and timestamp are -1 when nothing matches."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: String = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


class ListOffsetsResponse(Message, answers=ListOffsetsRequest):
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
