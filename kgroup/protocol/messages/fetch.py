"""Fetch (key 1): read record batches from partitions, in a fetch session or without one.

- 4: first version served; isolation level, aborted transactions
- 5: log start offset
- 6: may answer KAFKA_STORAGE_ERROR
- 7: fetch sessions (KIP-227)
- 8: throttled after the answer is sent
- 9: the leader epoch the client knows (KIP-320)
- 10: records may be compressed with zstd (KIP-110)
- 11: rack, and the read replica to prefer (KIP-392)
- 12: flexible; last fetched epoch, diverging epoch, current leader (KIP-595)
- 13: topic ids instead of names (KIP-516)
- 14: may answer OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
- 15: replica id and epoch in a tagged struct (KIP-903)
- 16: addresses of current leaders (KIP-951)
- 17: directory id of a follower (KIP-853)
- 18: high watermark a follower knows (KIP-1166)

Errors: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (13), INCONSISTENT_TOPIC_ID (13),
NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
OFFSET_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR,
UNSUPPORTED_COMPRESSION_TYPE, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
FETCH_SESSION_TOPIC_ID_ERROR, OFFSET_MOVED_TO_TIERED_STORAGE (14).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Int8, Int16, Int32, Int64, Records, Since, String, Tagged, Until, Uuid


class ReplicaState(Struct):
    """The follower that fetches; -1 for a consumer."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Annotated[Int32, Since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, Since(12)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, Since(17), Tagged(0)] = bytes(16)
    high_watermark: Annotated[Int64, Since(18), Tagged(1)] = (1 << 63) - 1


class FetchTopic(Struct):
    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = bytes(16)
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Struct):
    """Partitions to take out of the fetch session."""

    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = bytes(16)
    partitions: tuple[Int32, ...] = ()


class FetchRequest(Message, api=1, versions=range(4, 19), flexible=12):
    cluster_id: Annotated[String | None, Since(12), Tagged(0)] = None
    replica_id: Annotated[Int32, Until(14)] = -1
    replica_state: Annotated[ReplicaState, Since(15), Tagged(1)] = ReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = (1 << 31) - 1
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, Since(7)] = 0
    session_epoch: Annotated[Int32, Since(7)] = -1
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], Since(7)] = ()
    rack_id: Annotated[String, Since(11)] = ""


class EpochEndOffset(Struct):
    """The end of the largest epoch both logs share; -1 when the logs do not diverge."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    """The leader to turn to; -1 when the broker does not know it."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    """The snapshot to fetch instead; for the metadata log only."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    """An aborted transaction whose records a read_committed consumer skips."""

    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, Since(12), Tagged(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, Since(12), Tagged(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, Since(12), Tagged(2)] = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    preferred_read_replica: Annotated[Int32, Since(11)] = -1
    records: Records | None = None


class FetchableTopicResponse(Struct):
    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = bytes(16)
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Struct):
    """The address of a leader named in the answer."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class FetchResponse(Message, answers=FetchRequest):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(7)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Since(16), Tagged(0)] = ()
