"""OffsetForLeaderEpoch (key 23): where a leader epoch ends, to notice a truncated log (KIP-320).

- 2: first version served
- 3: replica id; -2 for a reader that may look past the high watermark
- 4: flexible

Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
TOPIC_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


class OffsetForLeaderEpochRequest(Message, api=23, versions=range(2, 5), flexible=4):
    replica_id: Annotated[Int32, Since(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...] = ()


class EpochEndOffset(Struct):
    """The end of the largest epoch not above the one asked for."""

    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: String = ""
    partitions: tuple[EpochEndOffset, ...] = ()


class OffsetForLeaderEpochResponse(Message, answers=OffsetForLeaderEpochRequest):
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
