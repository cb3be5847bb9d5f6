"""DescribeConfigs: settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.coordinator import roster
from kgroup.coordinator.group_settings import bounds as group_bounds
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kgroup.runtime.broker_settings import (
    ALL_BROKERS,
    DYNAMIC,
    FROM_ALL_BROKERS,
    FROM_DEFAULT,
    FROM_FILE,
    FROM_TOPIC,
    NULL_BY_DEFAULT,
    Layer,
    in_force,
)
from kgroup.runtime.settings import NODE_IDS, BrokerSettings
from kgroup.runtime.topic_settings import (
    BOOLEAN,
    DOUBLE,
    INT,
    INTERNAL,
    LIST,
    LONG,
    SETTINGS,
    STRING,
    written,
)

TOPIC, BROKER, GROUP = 2, 4, 32  # resource types
FROM_GROUP = 8  # config source


def describe_configs(broker: Dispatcher, call: Call[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Every setting of each resource, or only the ones named."""
    request = call.body
    results = []
    for resource in as_often_as_asked(request.resources, lambda r: (r.resource_type, r.resource_name)):
        try:
            entries = list(_entries(broker, resource, request.include_synonyms))
        except Refused as refused:
            results.append(_refused(resource, refused.code, refused.message))
            continue
        keys = resource.configuration_keys
        results.append(
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                # an empty list means all, too: clients before 0.11 send one
                configs=tuple(entry for entry in entries if not keys or entry.name in keys),
            )
        )
    return DescribeConfigsResponse(results=tuple(results))


def refuse(request: DescribeConfigsRequest, code: ErrorCode, message: str | None) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(_refused(r, code, message) for r in request.resources))


def _entries(
    broker: Dispatcher, resource: DescribeConfigsResource, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    if resource.resource_type == TOPIC:
        return _topic_entries(broker, resource.resource_name, synonyms)
    if resource.resource_type == BROKER:
        return _broker_entries(broker, resource.resource_name, synonyms)
    if resource.resource_type == GROUP:
        return _group_entries(broker, resource.resource_name, synonyms)
    raise Refused(
        ErrorCode.INVALID_REQUEST, f"Resource type {resource.resource_type} has no configuration here"
    )


def _topic_entries(broker: Dispatcher, name: str, synonyms: bool) -> Iterable[DescribeConfigsResourceResult]:
    rules.check_name(name)
    cluster = broker.cluster
    topic = cluster.catalog.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    own = {key: written(key, value) for key, value in cluster.in_force.own_of(topic).items()}
    for key, setting in SETTINGS.items():
        layers = cluster.configs.topic_layers(key, own, cluster.in_force.only_node)
        yield _entry(key, in_force(key, layers), layers, synonyms, setting.type)
    for key in INTERNAL.keys() & own.keys():
        internal = Layer(key, own[key], FROM_TOPIC)
        yield _entry(key, internal, [internal], synonyms, INT)


def _broker_entries(broker: Dispatcher, name: str, synonyms: bool) -> Iterable[DescribeConfigsResourceResult]:
    configs = broker.cluster.configs
    if not name:
        for key, value in configs.dynamic.get(ALL_BROKERS, {}).items():
            layer = Layer(key, value, FROM_ALL_BROKERS)
            yield _entry(key, layer, [layer], synonyms, DYNAMIC[key].type)
        return
    node = _node(broker, name)
    for key in NODE_IDS:
        number = Layer(key, str(node), FROM_FILE)
        yield _entry(key, number, [number], synonyms, INT, read_only=True)
    fixed = {**BrokerSettings().as_text(), **type(broker.cluster.group_config)().as_settings()}
    defaults = {**fixed, **{key: setting.default for key, setting in DYNAMIC.items()}}
    for key, default in defaults.items():
        if key in NODE_IDS:
            continue
        layers = configs.layers(key, None if key in NULL_BY_DEFAULT else default, node)
        known = DYNAMIC.get(key)
        kind = known.type if known else _type_of(key, default)
        first = layers[0] if layers else None
        yield _entry(key, first, layers, synonyms, kind, read_only=known is None)


def _node(broker: Dispatcher, name: str) -> int:
    """The broker with this id; all of them know of each other here."""
    try:
        node = int(name)
    except ValueError:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if node not in broker.cluster.endpoints:
        known = ", ".join(map(str, broker.cluster.endpoints))
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {known} or empty string, but received {name}",
        )
    return node


def _group_entries(
    broker: Dispatcher, group_id: str, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    own = broker.cluster.catalog.group_configs.get(group_id, {})
    for key, bounds in group_bounds(broker.cluster.group_config).items():
        layers = broker.cluster.configs.layers(f"group.{key}", str(bounds.default), None)
        if key in own:
            layers.insert(0, Layer(key, own[key], FROM_GROUP))
        yield _entry(key, layers[0], layers, synonyms, INT)
    # Told only where they are made: to everybody else a group has the settings that Kafka knows.
    for key in roster.SETTINGS:
        if key in own:
            layer = Layer(key, own[key], FROM_GROUP)
            yield _entry(key, layer, [layer], synonyms, LIST if key in roster.LISTS else INT)


def _entry(
    name: str, first: Layer | None, layers: list[Layer], synonyms: bool, kind: int, *, read_only: bool = False
) -> DescribeConfigsResourceResult:
    """The setting as the first layer gives it; one that no layer gives has no value by default."""
    return DescribeConfigsResourceResult(
        name=name,
        value=first.value if first else None,
        read_only=read_only,
        config_source=first.source if first else FROM_DEFAULT,
        synonyms=tuple(
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in layers
            if synonyms
        ),
        config_type=kind,
    )


def _type_of(name: str, value: str) -> int:
    if value in ("true", "false"):
        return BOOLEAN
    if name in ("cleanup.policy", "group.consumer.assignors", "group.coordinator.rebalance.protocols"):
        return LIST
    if name.endswith(".ratio"):
        return DOUBLE
    if not value.lstrip("-").isdecimal():
        return STRING
    return LONG if name.endswith(".ms") else INT


def _refused(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


APIS = (Api(DescribeConfigsRequest, describe_configs, refuse),)
