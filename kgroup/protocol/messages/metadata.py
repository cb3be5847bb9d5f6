"""Metadata (key 3): brokers, topics, partitions and their leaders.

`topics=None` asks for all topics from version 1 on; in version 0 an empty list does.

- 1: racks, controller, internal flag; null topics
- 2: cluster id
- 3: throttle time
- 4: may forbid the creation of topics
- 5: offline replicas
- 6: throttled after the answer is sent
- 7: leader epochs
- 8: authorized operations
- 9: flexible
- 10: topic ids in the answer
- 11: authorized operations of the cluster move to DescribeCluster (KIP-700)
- 12: topics may be asked for by id, and the answer may lack the name
- 13: an error for the whole answer

Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, LEADER_NOT_AVAILABLE, INVALID_TOPIC_EXCEPTION,
TOPIC_AUTHORIZATION_FAILED, LISTENER_NOT_FOUND, REPLICA_NOT_AVAILABLE, REBOOTSTRAP_REQUIRED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, NullableSince, Since, String, Until, Uuid


class MetadataRequestTopic(Struct):
    """A topic wanted, by name or (version 12) by id with a null name."""

    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    name: Annotated[String | None, NullableSince(10)] = None


class MetadataRequest(Message, api=3, versions=range(14), flexible=9):
    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, NullableSince(1)] = ()
    allow_auto_topic_creation: Annotated[Bool, Since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, Since(8), Until(10)] = False
    include_topic_authorized_operations: Annotated[Bool, Since(8)] = False


class MetadataResponseBroker(Struct):
    """A live broker and the address of the listener that was asked."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, Since(1)] = None


class MetadataResponsePartition(Struct):
    """A partition: leader -1 when there is none."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    offline_replicas: Annotated[tuple[Int32, ...], Since(5)] = ()


class MetadataResponseTopic(Struct):
    """A topic, or why it cannot be described."""

    error_code: Int16 = 0
    name: Annotated[String | None, NullableSince(12)] = None
    topic_id: Annotated[Uuid, Since(10)] = bytes(16)
    is_internal: Annotated[Bool, Since(1)] = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: Annotated[Int32, Since(8)] = -(1 << 31)


class MetadataResponse(Message, answers=MetadataRequest):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: Annotated[String | None, Since(2)] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: Annotated[Int32, Since(8), Until(10)] = -(1 << 31)
    error_code: Annotated[Int16, Since(13)] = 0
