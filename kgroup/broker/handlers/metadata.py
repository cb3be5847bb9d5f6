"""Metadata, DescribeCluster and DescribeTopicPartitions: brokers, topics, leaders."""

from __future__ import annotations

from typing import Any

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.topics import check_name, may_auto_create, new_topic, too_many
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kgroup.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kgroup.runtime.catalog import CatalogTopic
from kgroup.security.acls import OPERATIONS, ResourceType

NO_LEADER = -1
BROKERS, CONTROLLERS = 1, 2  # endpoint types
CREATION_SINCE = 4  # before, a request could not forbid it
PAGE_MAX = 2000
NOT_ASKED = -(1 << 31)
# a bit for each operation the resource knows: all clients may do everything
TOPIC_OPERATIONS = sum(1 << operation for operation in OPERATIONS[ResourceType.TOPIC])
CLUSTER_OPERATIONS = sum(1 << operation for operation in OPERATIONS[ResourceType.CLUSTER])


def metadata(broker: Dispatcher, call: Call[MetadataRequest]) -> MetadataResponse:
    """Return the brokers and the topics asked for, which it may create (auto.create.topics.enable)."""
    request = call.body
    cluster = broker.cluster
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None or (call.version == 0 and not request.topics):
        topics = [_topic(broker, topic, operations) for topic in cluster.catalog.topics.values()]
    else:
        create = request.allow_auto_topic_creation or call.version < CREATION_SINCE
        distinct = {(requested.name, requested.topic_id): requested for requested in request.topics}
        new = sum(requested.name not in cluster.catalog.topics for requested in distinct.values())
        create = create and not too_many(cluster, new * cluster.settings.num_partitions)
        with broker.together():
            topics = [_wanted(broker, requested, create, operations) for requested in distinct.values()]
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=node, host=host, port=port)
            for node, (host, port) in broker.endpoints(call).items()
        ),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller,
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def describe_cluster(broker: Dispatcher, call: Call[DescribeClusterRequest]) -> DescribeClusterResponse:
    """Return the brokers; controllers are not asked for here (KIP-919)."""
    request = call.body
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        text = "The request was sent to an endpoint of the wrong type."
        return DescribeClusterResponse(error_code=code, error_message=text)
    return DescribeClusterResponse(
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.cluster.controller,
        brokers=tuple(
            DescribeClusterBroker(broker_id=node, host=host, port=port)
            for node, (host, port) in broker.endpoints(call).items()
        ),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def describe_topic_partitions(
    broker: Dispatcher, call: Call[DescribeTopicPartitionsRequest]
) -> DescribeTopicPartitionsResponse:
    """Topics in the order of their names, a page of partitions at a time; none named means all (KIP-966)."""
    request = call.body
    catalog = broker.cluster.catalog
    names = sorted({t.name for t in request.topics} or catalog.topics)
    cursor = request.cursor
    first = 0
    if cursor is not None:
        if cursor.partition_index < 0:
            raise Refused(ErrorCode.INVALID_REQUEST)
        names = [name for name in names if name >= cursor.topic_name]
        first = cursor.partition_index if names and names[0] == cursor.topic_name else 0
    left = min(request.response_partition_limit, PAGE_MAX)
    described: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if left <= 0:
            next_cursor = ResponseCursor(topic_name=name, partition_index=first)
            return DescribeTopicPartitionsResponse(topics=tuple(described), next_cursor=next_cursor)
        topic = catalog.topics.get(name)
        if topic is None:
            code = _why_missing(name)
            described.append(DescribeTopicPartitionsResponseTopic(name=name, error_code=code))
            continue
        page = range(first, min(topic.partitions, first + left))
        described.append(
            DescribeTopicPartitionsResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                is_internal=topic.internal,
                partitions=tuple(
                    DescribeTopicPartitionsResponsePartition(
                        **_state(broker, topic, p), eligible_leader_replicas=(), last_known_elr=()
                    )
                    for p in page
                ),
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        left -= len(page)
        if page.stop < topic.partitions:
            next_cursor = ResponseCursor(topic_name=name, partition_index=page.stop)
            return DescribeTopicPartitionsResponse(topics=tuple(described), next_cursor=next_cursor)
        first = 0
    return DescribeTopicPartitionsResponse(topics=tuple(described))


def _wanted(
    broker: Dispatcher, requested: MetadataRequestTopic, create: bool, operations: int
) -> MetadataResponseTopic:
    catalog = broker.cluster.catalog
    if requested.topic_id != ZERO_UUID:
        topic = catalog.by_id(requested.topic_id)
        return (
            _topic(broker, topic, operations) if topic else _no_topic(requested, ErrorCode.UNKNOWN_TOPIC_ID)
        )
    name = requested.name or ""
    topic = catalog.topics.get(name)
    if topic is None and create and may_auto_create(broker.cluster, name):
        try:
            topic = new_topic(broker.cluster, name, -1, -1, {})
        except Refused as refused:
            return _no_topic(requested, refused.code)
        broker.cluster.create_topic(topic)
    if topic is None:
        return _no_topic(requested, _why_missing(name))
    return _topic(broker, topic, operations)


def _why_missing(name: str) -> ErrorCode:
    try:
        check_name(name)
    except Refused as refused:
        return refused.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _no_topic(requested: MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=requested.name, topic_id=requested.topic_id)


def _topic(broker: Dispatcher, topic: CatalogTopic, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=tuple(
            MetadataResponsePartition(**_state(broker, topic, p)) for p in range(topic.partitions)
        ),
        topic_authorized_operations=operations,
    )


def _state(broker: Dispatcher, topic: CatalogTopic, partition: int) -> dict[str, Any]:
    """Return a partition's state for both kinds of answer, by the fields' names."""
    placement = broker.cluster.placement_of(topic, partition)
    offline = broker.cluster.offline(topic.name, partition)
    return {
        "error_code": ErrorCode.LEADER_NOT_AVAILABLE if offline else ErrorCode.NONE,
        "partition_index": partition,
        "leader_id": NO_LEADER if offline else placement.leader,
        "leader_epoch": placement.epoch,
        "replica_nodes": placement.replicas,
        "isr_nodes": placement.replicas,
        "offline_replicas": placement.replicas if offline else (),
    }


APIS = (
    Api(MetadataRequest, metadata),
    Api(DescribeClusterRequest, describe_cluster),
    Api(DescribeTopicPartitionsRequest, describe_topic_partitions),
)
