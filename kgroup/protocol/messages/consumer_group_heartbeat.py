"""ConsumerGroupHeartbeat (key 68): join, stay in, and leave a group of the consumer protocol (KIP-848).

Member epoch 0 joins, -1 leaves, -2 leaves for a while as a static member. A field that is null (or -1, the
rebalance timeout) has not changed since the last heartbeat; a null assignment in the answer likewise.

Fields with tags from 10000 on carry KIP-848's client-side assignors, which no released Kafka has; a peer that
does not know them skips them.

- 0: the coordinator may choose the member id
- 1: subscription by regular expression; the client chooses its member id (KIP-1082)

Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST,
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
UNSUPPORTED_ASSIGNOR, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND,
UNSUPPORTED_VERSION, INVALID_REGULAR_EXPRESSION (1).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Bytes, Int8, Int16, Int32, Since, String, Tagged, Uuid


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


class Assignor(Struct):
    """A client-side assignor the member offers, most wanted first; the reason is why its metadata changed."""

    name: String
    minimum_version: Int16 = 0
    maximum_version: Int16 = 0
    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


class ConsumerGroupHeartbeatRequest(Message, api=68, versions=range(2), flexible=0):
    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[String, ...] | None = None
    subscribed_topic_regex: Annotated[String | None, Since(1)] = None
    server_assignor: String | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    client_assignors: Annotated[tuple[Assignor, ...] | None, Tagged(10000)] = None


class Assignment(Struct):
    """All the partitions the member may use now; pending ones are still held by their former owners."""

    topic_partitions: tuple[TopicPartitions, ...] = ()
    error: Annotated[Int8, Tagged(10000)] = 0
    pending_topic_partitions: Annotated[tuple[TopicPartitions, ...], Tagged(10001)] = ()
    metadata_version: Annotated[Int16, Tagged(10002)] = 0
    metadata_bytes: Annotated[Bytes, Tagged(10003)] = b""


class ConsumerGroupHeartbeatResponse(Message, answers=ConsumerGroupHeartbeatRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    should_compute_assignment: Annotated[Bool, Tagged(10000)] = False
