"""DescribeLogDirs (key 35): a broker's log folders and the size of the partitions in them (KIP-113).

- 1: first version served; throttled after the answer is sent
- 2: flexible
- 3: error of the whole request
- 4: size of the volume and what is left of it (KIP-827)
- 5: whether a folder is closed for new partitions (KIP-1066)

Errors: KAFKA_STORAGE_ERROR, CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, Int64, Since, String


class DescribableLogDirTopic(Struct):
    topic: String
    partitions: tuple[Int32, ...] = ()


class DescribeLogDirsRequest(Message, api=35, versions=range(1, 6), flexible=2):
    topics: tuple[DescribableLogDirTopic, ...] | None = ()


class DescribeLogDirsPartition(Struct):
    """A partition's size in bytes, and how many records it lacks; `is_future_key` while it moves folders."""

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Bool = False


class DescribeLogDirsTopic(Struct):
    name: String = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Struct):
    error_code: Int16 = 0
    log_dir: String = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: Annotated[Int64, Since(4)] = -1
    usable_bytes: Annotated[Int64, Since(4)] = -1
    is_cordoned: Annotated[Bool, Since(5)] = False


class DescribeLogDirsResponse(Message, answers=DescribeLogDirsRequest):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(3)] = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
