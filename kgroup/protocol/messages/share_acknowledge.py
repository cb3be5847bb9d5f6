"""ShareAcknowledge (key 79): acknowledge acquired records of a share session (KIP-932).

- 1: first version served
- 2: renewing acknowledgements (KIP-1222)

Errors: INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH,
UNSUPPORTED_VERSION, and for each partition TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, INVALID_RECORD_STATE, KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.protocol.types import Bool, Int16, Int32, Since, String, Uuid


class AcknowledgePartition(Struct):
    partition_index: Int32 = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


class AcknowledgeTopic(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[AcknowledgePartition, ...] = ()


class ShareAcknowledgeRequest(Message, api=79, versions=range(1, 3), flexible=0):
    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    is_renew_ack: Annotated[Bool, Since(2)] = False
    topics: tuple[AcknowledgeTopic, ...] = ()


class PartitionData(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = bytes(16)
    partitions: tuple[PartitionData, ...] = ()


class ShareAcknowledgeResponse(Message, answers=ShareAcknowledgeRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, Since(2)] = 0
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
