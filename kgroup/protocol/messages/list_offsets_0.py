"""ListOffsets (key 2) version 0, which only brokers before 4.0 serve: offsets of a log, the newest first.

A broker of Kafka 0.8 to 0.10.0 knows no other. -1 asks for the end of the log, -2 for its beginning.

Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR.
"""

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int16, Int32, Int64, String


class ListOffsets0Partition(Struct):
    partition_index: Int32
    timestamp: Int64
    max_num_offsets: Int32 = 1


class ListOffsets0Topic(Struct):
    name: String
    partitions: tuple[ListOffsets0Partition, ...] = ()


class ListOffsets0Request(Message, api=2, versions=range(1), flexible=6):
    replica_id: Int32
    topics: tuple[ListOffsets0Topic, ...] = ()


class ListOffsets0PartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    offsets: tuple[Int64, ...] = ()


class ListOffsets0TopicResponse(Struct):
    name: String = ""
    partitions: tuple[ListOffsets0PartitionResponse, ...] = ()


class ListOffsets0Response(Message, answers=ListOffsets0Request):
    topics: tuple[ListOffsets0TopicResponse, ...] = ()
