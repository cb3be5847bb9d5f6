"""ShareFetch (key 78): acquire records of partitions in a share session, and acknowledge others (KIP-932).

Session epoch 0 opens a share session, -1 closes it. Of a batch to acknowledge, one type stands for all of its
records, or there is one per record.

- 1: first version served
- 2: how to acquire (KIP-1206), renewing acknowledgements (KIP-1222)

Errors: INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH,
SHARE_SESSION_LIMIT_REACHED, UNSUPPORTED_VERSION, and for each partition TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR,
INVALID_RECORD_STATE (of its acknowledgements), UNKNOWN_SERVER_ERROR.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Int64, Records, Since, String, Uuid


class AcknowledgementBatch(Struct):
    """Records up to `last_offset`; types: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    acknowledge_types: tuple[Int8, ...] = ()


class FetchPartition(Struct):
    partition_index: Int32 = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


class FetchTopic(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Struct):
    """Partitions to take out of the share session."""

    topic_id: Uuid = bytes(16)
    partitions: tuple[Int32, ...] = ()


class ShareFetchRequest(Message, api=78, versions=range(1, 3), flexible=0):
    """`share_acquire_mode`: 0 whole batches, 1 no more than `max_records`."""

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = (1 << 31) - 1
    max_records: Int32 = 0
    batch_size: Int32 = 0
    share_acquire_mode: Annotated[Int8, Since(2)] = 0
    is_renew_ack: Annotated[Bool, Since(2)] = False
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()


class AcquiredRecords(Struct):
    """Records up to `last_offset`, and how often they have been delivered, this time included."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


class PartitionData(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
    records: Records = b""
    acquired_records: tuple[AcquiredRecords, ...] = ()


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionData, ...] = ()


class ShareFetchResponse(Message, answers=ShareFetchRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: tuple[ShareFetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
