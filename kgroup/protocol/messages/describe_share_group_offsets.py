"""DescribeShareGroupOffsets (key 90): where share groups begin to read each partition (KIP-932).

- 0: first version
- 1: lag in the response (KIP-1226)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND,
INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, and for each partition
TOPIC_AUTHORIZATION_FAILED and what kept its end from being read.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, Since, String, Uuid


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = ""
    partitions: tuple[Int32, ...] = ()


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """One group; without `topics` every partition that has been initialized for it."""

    group_id: String = ""
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = None


class DescribeShareGroupOffsetsRequest(Message, api=90, versions=range(2), flexible=0):
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = ()


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """`start_offset` is -1 where none is set or it could not be read, `lag` -1 where it is not known."""

    partition_index: Int32 = 0
    start_offset: Int64 = 0
    leader_epoch: Int32 = 0
    lag: Annotated[Int64, Since(1)] = -1
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = ""
    topic_id: Uuid = bytes(16)
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = ()


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: String = ""
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = ()
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsResponse(Message, answers=DescribeShareGroupOffsetsRequest):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = ()
