"""Topics and brokers of a cluster, and how to add a topic."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from kgroup.admin.discovery import NO_NODE, ClusterView
from kgroup.admin.models import ItemError, Node, TopicDescription
from kgroup.admin.read.visibility import sees_every_topic, unseen_topics
from kgroup.admin.refusals import check, item_error, refused
from kgroup.domain import value
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kgroup.security.rights import CREATE, on_topic

BROKER_DEFAULT = -1


@value
class ClusterStatus:
    """The cluster as one broker's metadata shows it.

    The counts are None where there may be topics that this principal may not see; `topics_seen` counts those
    it sees, and `errors` says what is missing.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[Node, ...]
    topics: Annotated[int | None, "null where rights may hide topics, as partitions and leaderless"]
    partitions: int | None
    leaderless: int | None
    topics_seen: int = 0
    errors: tuple[ItemError, ...] = ()


def cluster_status(cluster: ClusterView) -> ClusterStatus:
    """Return brokers, controller and sizes, internal topics included; hidden topics leave sizes unknown."""
    answer = cluster.metadata(None)
    all_seen = sees_every_topic(cluster)
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    nodes = sorted(answer.brokers, key=lambda broker: broker.node_id)
    return ClusterStatus(
        cluster_id=answer.cluster_id,
        controller_id=None if answer.controller_id == NO_NODE else answer.controller_id,
        brokers=tuple(Node(broker.node_id, broker.host, broker.port) for broker in nodes),
        topics=len(answer.topics) if all_seen else None,
        partitions=len(partitions) if all_seen else None,
        leaderless=sum(partition.leader_id < 0 for partition in partitions) if all_seen else None,
        topics_seen=len(answer.topics),
        errors=() if all_seen else (unseen_topics(),),
    )


def topics(cluster: ClusterView, names: Iterable[str] | None = None) -> tuple[TopicDescription, ...]:
    """Return the topics named, or all visible, by name; raise the first failure of one that was named."""
    described = cluster.topics(names)
    for topic in described.values():
        if isinstance(topic, KgroupError) and names is not None:
            raise topic
    known = (topic for topic in described.values() if isinstance(topic, TopicDescription))
    return tuple(sorted(known, key=lambda topic: topic.name))


def list_topics(cluster: ClusterView) -> tuple[tuple[TopicDescription, ...], tuple[ItemError, ...]]:
    """Return the visible topics by name, and what fails or may be hidden by rights."""
    known, errors = [], []
    for name, topic in sorted(cluster.topics(None).items()):
        if isinstance(topic, TopicDescription):
            known.append(topic)
        else:
            errors.append(item_error(name, topic))
    if not sees_every_topic(cluster):
        errors.append(unseen_topics())
    return tuple(known), tuple(errors)


def create_topic(
    cluster: ClusterView,
    name: str,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    configs: Mapping[str, str] | None = None,
) -> TopicDescription:
    """Create a topic and return its description; -1 leaves a number to the broker's default.

    Raise BrokerRefused with TOPIC_ALREADY_EXISTS and the like. Not repeated when the outcome is unknown.
    """
    request = _create_request(name, partitions, replication_factor, configs or {}, cluster.retry.timeout_s)
    # Versions below 4 do not know -1 as "the broker's default".
    lowest = 4 if BROKER_DEFAULT in (partitions, replication_factor) else 2

    def ask(left_s: float) -> None:
        controller = cluster.metadata(()).controller_id
        node = None if controller == NO_NODE else controller
        answer = cluster.ask(node, request, CreateTopicsResponse, versions=(lowest, None), timeout_s=left_s)
        for result in answer.topics:
            if result.error_code:
                needs = [on_topic(CREATE, name)]
                raise refused(result.error_code, f"creating topic {name}", result.error_message, needs)

    def known(_: float) -> TopicDescription:
        topic = cluster.topics([name])[name]
        if isinstance(topic, KgroupError):
            raise topic
        if any(partition.leader < 0 for partition in topic.partitions):
            raise refused(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name}")
        return topic

    cluster.retry.call(ask, idempotent=False)
    # The broker asked may not know all its leaders yet.
    return cluster.retry.call(known, idempotent=True)


def check_topic(cluster: ClusterView, name: str) -> None:
    """Ask whether the broker would create a topic, without creating it; raise as `create_topic`."""
    made = _create_request(name, 1, 1, {}, cluster.retry.timeout_s)
    request = replace(made, validate_only=True)
    for result in cluster.ask(None, request, CreateTopicsResponse, versions=(2, None)).topics:
        check(result.error_code, f"creating topic {name}", result.error_message, [on_topic(CREATE, name)])


def _create_request(
    name: str, partitions: int, replication_factor: int, configs: Mapping[str, str], timeout_s: float
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=int(timeout_s * 1000))
