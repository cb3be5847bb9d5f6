"""CreateTopics, DeleteTopics, CreatePartitions; every broker takes them, as they share one catalog."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.domain import INTERNAL_TOPICS, ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
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
from kgroup.runtime.broker_settings import in_force
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.placement import Placement, check_replicas
from kgroup.runtime.topic_settings import SETTINGS

BY_ID_SINCE = 6


def create_topics(broker: Dispatcher, call: Call[CreateTopicsRequest]) -> CreateTopicsResponse:
    """Create each topic by itself; one named twice is INVALID_REQUEST."""
    request = call.body
    counts = Counter(topic.name for topic in request.topics)
    default = broker.cluster.settings.num_partitions
    sizes = (
        len(t.assignments) or (default if t.num_partitions == -1 else max(t.num_partitions, 0))
        for t in request.topics
    )
    _check_sum(broker, sum(sizes))
    results = {}
    # Topics of one request mostly have the same settings: without this, to list them was most of the work.
    known: dict[tuple[tuple[str, str], ...], tuple[CreatableTopicConfigs, ...]] = {}
    with broker.together():
        for requested in request.topics:
            try:
                if counts[requested.name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                topic = _planned(broker, requested)
                if not request.validate_only:
                    broker.cluster.create_topic(topic)
                own = tuple(topic.config.items())
                if own not in known:
                    known[own] = _settings(broker, topic)
                results[requested.name] = _created(topic, known[own])
            except Refused as refused:
                results[requested.name] = _not_created(requested, refused.code, refused.message)
    return CreateTopicsResponse(topics=tuple(results.values()))


def delete_topics(broker: Dispatcher, call: Call[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete each topic by itself, by name or by id; the coordinator's own topic is refused."""
    request = call.body
    results, gone = [], []
    with broker.together():
        for requested in _named(request, call.version):
            try:
                topic = _existing(broker, requested)
                broker.cluster.delete_topic(topic.name)
                gone.append(topic)
                results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
            except Refused as refused:
                results.append(_not_deleted(requested, refused.code, refused.message))
    for topic in gone:
        for partition in range(topic.partitions):
            broker.watchers.notify((topic.name, partition))
    return DeleteTopicsResponse(responses=tuple(results))


def create_partitions(broker: Dispatcher, call: Call[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    """Add partitions by topic; a topic named twice is INVALID_REQUEST."""
    request = call.body
    counts = Counter(topic.name for topic in request.topics)
    known = broker.cluster.catalog.topics
    growing = ((known[t.name].partitions, t.count) for t in request.topics if t.name in known)
    _check_sum(broker, sum(max(count - before, 0) for before, count in growing))
    results = {}
    with broker.together():
        for requested in request.topics:
            try:
                if counts[requested.name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                _check_growth(broker, requested)
                if not request.validate_only:
                    replicas = [assignment.broker_ids for assignment in requested.assignments or ()]
                    broker.cluster.add_partitions(requested.name, requested.count, replicas)
                results[requested.name] = CreatePartitionsTopicResult(name=requested.name)
            except Refused as refused:
                results[requested.name] = _not_grown(requested, refused.code, refused.message)
    return CreatePartitionsResponse(results=tuple(results.values()))


def _planned(broker: Dispatcher, requested: CreatableTopic) -> CatalogTopic:
    rules.check_new_name(broker.cluster, requested.name)
    config = {}
    for entry in requested.configs:
        if entry.value is None:
            raise Refused(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {entry.name}"
            )
        config[entry.name] = entry.value
    rules.check_config(broker.cluster, config)
    if not requested.assignments:
        return rules.new_topic(
            broker.cluster, requested.name, requested.num_partitions, requested.replication_factor, config
        )
    # A manual assignment is checked by Kafka's rules and in its order.
    for given, what in (
        (requested.replication_factor, "replication factor"),
        (requested.num_partitions, "numPartitions"),
    ):
        if given != -1:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    placed: dict[int, Placement] = {}
    factor = None
    for assignment in requested.assignments:
        number, replicas = assignment.partition_index, assignment.broker_ids
        if number in placed:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {number}",
            )
        check_replicas(replicas, broker.cluster.nodes, factor)
        factor = len(replicas)
        placed[number] = Placement.at(replicas)
    if any(partition not in placed for partition in range(len(placed))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    topic = rules.new_topic(broker.cluster, requested.name, len(placed), len(placed[0].replicas), config)
    return replace(topic, placements=placed)


def _settings(broker: Dispatcher, topic: CatalogTopic) -> tuple[CreatableTopicConfigs, ...]:
    configs = []
    cluster = broker.cluster
    for name in sorted(SETTINGS):
        layers = cluster.configs.topic_layers(name, topic.config, cluster.in_force.only_node)
        _, value, source = in_force(name, layers)
        configs.append(CreatableTopicConfigs(name=name, value=value, config_source=source))
    return tuple(configs)


def _created(topic: CatalogTopic, configs: tuple[CreatableTopicConfigs, ...]) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _not_created(requested: CreatableTopic, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=requested.name, error_code=code, error_message=message)


def _named(request: DeleteTopicsRequest, version: int) -> tuple[DeleteTopicState, ...]:
    if version >= BY_ID_SINCE:
        return request.topics
    return tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names)


def _existing(broker: Dispatcher, requested: DeleteTopicState) -> CatalogTopic:
    catalog = broker.cluster.catalog
    if requested.name is not None and requested.topic_id != ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if requested.name is None:
        topic = catalog.by_id(requested.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = catalog.topics.get(requested.name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        raise Refused(missing, "This server does not host this topic.")
    if topic.name in INTERNAL_TOPICS:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} holds the groups and is not deleted.")
    return topic


def _not_deleted(requested: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=requested.name, topic_id=requested.topic_id, error_code=code, error_message=message
    )


def _check_sum(broker: Dispatcher, new: int) -> None:
    if why := rules.too_many(broker.cluster, new):
        raise Refused(ErrorCode.POLICY_VIOLATION, why)


def _check_growth(broker: Dispatcher, requested: CreatePartitionsTopic) -> None:
    topic = broker.cluster.catalog.topics.get(requested.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic.")
    if requested.name in INTERNAL_TOPICS:
        raise Refused(ErrorCode.INVALID_PARTITIONS, "Groups would move to other partitions.")
    if not topic.partitions < requested.count <= rules.MAX_PARTITIONS:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {requested.name} currently has {topic.partitions} partition(s); "
            f"{requested.count} would not be an increase.",
        )
    added = requested.count - topic.partitions
    if requested.assignments is not None:
        if len(requested.assignments) != added:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only "
                f"{len(requested.assignments)} assignment(s) were specified.",
            )
        factor = len(broker.cluster.placement_of(topic, 0).replicas)
        for assignment in requested.assignments:
            check_replicas(assignment.broker_ids, broker.cluster.nodes, factor)


def _not_grown(
    requested: CreatePartitionsTopic, code: ErrorCode, message: str | None
) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=requested.name, error_code=code, error_message=message)


APIS = (
    Api(CreateTopicsRequest, create_topics),
    Api(DeleteTopicsRequest, delete_topics),
    Api(CreatePartitionsRequest, create_partitions),
)
