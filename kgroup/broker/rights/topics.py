"""Rules about topics that are more than one right: to see that one exists, to create and delete it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.fetch import fetch as read_partitions
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.rule import asked
from kgroup.domain import INTERNAL_TOPICS, ZERO_UUID
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kgroup.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgroup.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kgroup.protocol.messages.fetch import FetchRequest
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kgroup.protocol.requests import CLUSTER_ACTION
from kgroup.security.acls import CLUSTER_NAME, Operation, ResourceType

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CREATION_SINCE = 4  # Metadata: before, a request could not forbid it
BY_ID_SINCE = 6  # DeleteTopics


def metadata(asker: Asker, broker: Dispatcher, call: Call[MetadataRequest], api: AnyApi) -> Answer:
    """Require Describe on each topic; of all topics, show only those.

    A topic that the request would create needs Create on it, or on the cluster.
    """
    request = call.body
    refused: list[MetadataResponseTopic] = []
    every = request.topics is None or (call.version == 0 and not request.topics)
    if not every:
        allowed = []
        for requested in request.topics or ():
            refusal = _refused_metadata(asker, broker, call, requested)
            if refusal is None:
                allowed.append(requested)
            else:
                refused.append(refusal)
        request = replace(request, topics=tuple(allowed))
        if not allowed and call.version == 0:
            call.version = 1  # before, none meant all

    operations = request.include_topic_authorized_operations or request.include_cluster_authorized_operations
    if not (every or refused or operations):
        return api.handle(broker, call)

    def finish(answer: MetadataResponse) -> Message:
        topics = answer.topics
        if every:
            topics = tuple(topic for topic in topics if asker.describes(topic.name or ""))
        if request.include_topic_authorized_operations:
            topics = tuple(
                topic
                if topic.name is None
                else replace(
                    topic, topic_authorized_operations=asker.operations(ResourceType.TOPIC, topic.name)
                )
                for topic in topics
            )
        answer = replace(answer, topics=(*topics, *refused))
        if not request.include_cluster_authorized_operations:
            return answer
        return replace(answer, cluster_authorized_operations=_cluster_operations(asker))

    return asked(broker, call, api, request, finish)


def _refused_metadata(
    asker: Asker, broker: Dispatcher, call: Call[MetadataRequest], requested: MetadataRequestTopic
) -> MetadataResponseTopic | None:
    """Return the answer in place of a topic that the caller may not see, or not have created."""
    if requested.topic_id != ZERO_UUID:
        name = broker.cluster.catalog.image.name_of(requested.topic_id)
        if name is None or asker.describes(name):
            return None
        return MetadataResponseTopic(error_code=DENIED, name=None, topic_id=requested.topic_id)
    name = requested.name or ""
    if not asker.describes(name):
        return MetadataResponseTopic(error_code=DENIED, name=name)
    creates = call.body.allow_auto_topic_creation or call.version < CREATION_SINCE
    creates = creates and broker.cluster.settings.auto_create_topics
    if not creates or name in broker.cluster.catalog.topics or may_create(asker, name):
        return None
    return MetadataResponseTopic(error_code=DENIED, name=name, is_internal=name in INTERNAL_TOPICS)


def may_create(asker: Asker, name: str) -> bool:
    """Return whether the caller may create a topic of this name."""
    return asker.on_cluster(Operation.CREATE) or asker.may(Operation.CREATE, ResourceType.TOPIC, name)


def _cluster_operations(asker: Asker) -> int:
    """Return what the caller may do with the cluster: nothing without Describe on it."""
    if not asker.on_cluster(Operation.DESCRIBE):
        return 0
    return asker.operations(ResourceType.CLUSTER, CLUSTER_NAME)


def describe_cluster(
    asker: Asker, broker: Dispatcher, call: Call[DescribeClusterRequest], api: AnyApi
) -> Answer:
    """Show the brokers to all callers; add what the caller may do with the cluster, if asked for."""

    def finish(response: DescribeClusterResponse) -> Message:
        if response.error_code or not call.body.include_cluster_authorized_operations:
            return response
        return replace(response, cluster_authorized_operations=_cluster_operations(asker))

    return asked(broker, call, api, call.body, finish)


def describe_partitions(
    asker: Asker, broker: Dispatcher, call: Call[DescribeTopicPartitionsRequest], api: AnyApi
) -> Answer:
    """Require Describe on each topic; pages, and the start of the next one, hide all others."""
    request = call.body
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    named = {topic.name for topic in request.topics}
    names = {name for name in named or broker.cluster.catalog.topics if name >= first}
    allowed = {name for name in names if asker.describes(name)}
    refused = tuple(
        DescribeTopicPartitionsResponseTopic(name=name, error_code=DENIED) for name in named & names - allowed
    )
    if not allowed and (cursor is None or cursor.partition_index >= 0):
        return DescribeTopicPartitionsResponse(topics=refused)
    if cursor is not None and cursor.partition_index >= 0 and first not in allowed:
        cursor = None

    def finish(response: DescribeTopicPartitionsResponse) -> Message:
        topics = tuple(
            replace(t, topic_authorized_operations=asker.operations(ResourceType.TOPIC, t.name or ""))
            for t in response.topics
        )
        return replace(response, topics=(*topics, *refused))

    asking = tuple(TopicRequest(name=name) for name in sorted(allowed))
    return asked(broker, call, api, replace(request, topics=asking, cursor=cursor), finish)


def create(asker: Asker, broker: Dispatcher, call: Call[CreateTopicsRequest], api: AnyApi) -> Answer:
    """Require Create on the cluster or the topic; show its settings to those who may describe them."""
    request = call.body
    counts = Counter(topic.name for topic in request.topics)
    allowed: list[CreatableTopic] = []
    refused: list[CreatableTopicResult] = []
    for topic in request.topics:
        if counts[topic.name] > 1 or may_create(asker, topic.name):
            allowed.append(topic)
        else:
            text = "Authorization failed."
            refused.append(CreatableTopicResult(name=topic.name, error_code=DENIED, error_message=text))

    def finish(response: CreateTopicsResponse) -> Message:
        topics = (
            topic
            if topic.error_code or asker.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
            else replace(
                topic, topic_config_error_code=DENIED, num_partitions=-1, replication_factor=-1, configs=()
            )
            for topic in response.topics
        )
        return replace(response, topics=(*topics, *refused))

    return asked(broker, call, api, replace(request, topics=tuple(allowed)), finish)


def delete(asker: Asker, broker: Dispatcher, call: Call[DeleteTopicsRequest], api: AnyApi) -> Answer:
    """Require Delete on the cluster or on the topic; hide the name of a topic without Describe."""
    request = call.body
    if asker.on_cluster(Operation.DELETE):
        return api.handle(broker, call)
    states = request.topics
    if call.version < BY_ID_SINCE:
        states = tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names)
    allowed: list[DeleteTopicState] = []
    refused: list[DeletableTopicResult] = []
    for requested in states:
        refusal = _not_deletable(asker, broker, requested)
        if refusal is None:
            allowed.append(requested)
        else:
            refused.append(refusal)
    body = replace(request, topics=tuple(allowed))
    if call.version < BY_ID_SINCE:
        body = replace(request, topic_names=tuple(topic.name or "" for topic in allowed))

    def finish(answer: DeleteTopicsResponse) -> Message:
        # in no order of their own: their places would reveal which of them exist
        return replace(
            answer, responses=tuple(sorted((*answer.responses, *refused), key=lambda t: t.name or ""))
        )

    return asked(broker, call, api, body, finish)


def _not_deletable(
    asker: Asker, broker: Dispatcher, requested: DeleteTopicState
) -> DeletableTopicResult | None:
    """Return the answer in place of a deletion; None for what the handler decides."""
    catalog = broker.cluster.catalog
    if requested.name is None:
        known = catalog.image.name_of(requested.topic_id)
        if known is None or asker.may(Operation.DELETE, ResourceType.TOPIC, known):
            return None
        name = known if asker.describes(known) else None
        return DeletableTopicResult(name=name, topic_id=requested.topic_id, error_code=DENIED)
    if requested.topic_id != ZERO_UUID:
        return None
    described = asker.describes(requested.name)
    deletable = asker.may(Operation.DELETE, ResourceType.TOPIC, requested.name)
    if described and (deletable or requested.name not in catalog.topics):
        return None
    return DeletableTopicResult(name=requested.name, error_code=DENIED)


def fetch(asker: Asker, broker: Dispatcher, call: Call[FetchRequest], api: AnyApi) -> Answer:
    """Require Read on each topic, each time its partitions are read; of a replica, ClusterAction."""
    request = call.body
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        return read_partitions(broker, call, lambda topic: CLUSTER_ACTION.met(asker, request))
    return read_partitions(broker, call, partial(asker.may, Operation.READ, ResourceType.TOPIC))
