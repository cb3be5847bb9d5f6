"""DescribeConfigs and ListConfigResources: settings of topics, brokers and groups, and which have some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher, refusing
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.coordinator import group_settings, roster
from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kgroup.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
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
from kgroup.runtime.setting_texts import TEXTS
from kgroup.runtime.settings import NODE_IDS, BrokerSettings
from kgroup.runtime.topic_settings import (
    BOOLEAN,
    INT,
    INTERNAL,
    LIST,
    LONG,
    SETTINGS,
    STRING,
    written,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # resource types
FROM_GROUP = 8  # config source
SHORT = 4  # config type, of settings of brokers only
_HIDDEN = frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
    }
)
"""Kafka's internal settings: a broker accepts but never shows them."""
_LONGS = frozenset(
    {
        "connections.max.idle.ms",
        "kgroup.connections.setup.timeout.ms",
        "offsets.retention.check.interval.ms",
    }
)


def describe_configs(broker: Dispatcher, call: Call[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Return every setting of each resource, or only the named ones."""
    request = call.body
    results = []
    for resource in as_often_as_asked(request.resources, lambda r: (r.resource_type, r.resource_name)):
        kind, name, synonyms = resource.resource_type, resource.resource_name, request.include_synonyms
        try:
            if kind == TOPIC:
                entries = list(_topic_entries(broker, name, synonyms))
            elif kind == BROKER:
                entries = list(_broker_entries(broker, name, synonyms))
            elif kind == GROUP:
                entries = list(_group_entries(broker, name, synonyms))
            else:
                text = f"Resource type {kind} has no configuration here"
                raise Refused(ErrorCode.INVALID_REQUEST, text)
        except Refused as refused:
            results.append(_refused(resource, refused.code, refused.message))
            continue
        if keys := resource.configuration_keys:  # an empty list means all, too: clients before 0.11 send one
            entries = [entry for entry in entries if entry.name in keys]
        if request.include_documentation:
            entries = [replace(entry, documentation=TEXTS.get(entry.name)) for entry in entries]
        results.append(DescribeConfigsResult(resource_type=kind, resource_name=name, configs=tuple(entries)))
    return DescribeConfigsResponse(results=tuple(results))


def refuse(request: DescribeConfigsRequest, code: ErrorCode, message: str | None) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(_refused(r, code, message) for r in request.resources))


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
    try:
        node = int(name)
    except ValueError:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if node not in broker.cluster.endpoints:
        nodes = ", ".join(map(str, broker.cluster.endpoints))
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {nodes} or empty string, but received {name}",
        )
    for key in NODE_IDS:
        number = Layer(key, str(node), FROM_FILE)
        yield _entry(key, number, [number], synonyms, INT, read_only=True)
    for each in broker.of_listeners(node):
        layer = Layer(each.name, each.value, FROM_FILE)
        found = _entry(each.name, layer, [layer], synonyms, each.type, read_only=True)
        yield replace(found, is_sensitive=each.secret)
    defaults_of_groups = GroupConfig(kafka=broker.cluster.group_config.kafka).as_settings()
    fixed = {**BrokerSettings().as_text(), **defaults_of_groups}
    defaults = {**fixed, **{key: setting.default for key, setting in DYNAMIC.items()}}
    for key, default in defaults.items():
        if key in NODE_IDS or key in _HIDDEN:
            continue
        layers = configs.layers(key, None if key in NULL_BY_DEFAULT else default, node)
        known = DYNAMIC.get(key)
        kind = known.type if known else _type_of(key, default)
        first = layers[0] if layers else None
        yield _entry(key, first, layers, synonyms, kind, read_only=known is None)


def _group_entries(
    broker: Dispatcher, group_id: str, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    own = broker.cluster.catalog.group_configs.get(group_id, {})
    config, in_brokers = broker.cluster.group_config, broker.cluster.configs.layers
    found = [
        (key, INT, in_brokers(f"group.{key}", str(bounds.default), None))
        for key, bounds in group_settings.bounds(config).items()
    ]
    for key, word in group_settings.WORDS.items():
        kind = BOOLEAN if word.is_flag else STRING
        found.append((key, kind, [Layer(key, word.default, FROM_DEFAULT)]))
    for key, text in group_settings.texts(config).items():
        kind = LIST if key == group_settings.STREAMS_RACK_TAGS else STRING
        found.append((key, kind, in_brokers(text.broker_setting, text.default, None)))
    for key, kind, layers in found:
        if key in own:
            layers.insert(0, Layer(key, group_settings.as_shown(key, own[key]), FROM_GROUP))
        yield _entry(key, layers[0], layers, synonyms, kind)
    # Shown only if set: to all other clients a group has the settings that Kafka knows.
    for key in roster.SETTINGS:
        if key in own:
            layer = Layer(key, own[key], FROM_GROUP)
            yield _entry(key, layer, [layer], synonyms, LIST if key in roster.LISTS else INT)


def _entry(
    name: str, first: Layer | None, layers: list[Layer], synonyms: bool, kind: int, *, read_only: bool = False
) -> DescribeConfigsResourceResult:
    """Return the setting from its first layer; one without layers has no value by default."""
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
    if name in GroupConfig.lists():
        return LIST
    if not value.lstrip("-").isdecimal():
        return STRING
    if name.endswith("topic.replication.factor") or name == "transaction.state.log.replication.factor":
        return SHORT
    return LONG if name in _LONGS else INT


def _refused(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def list_resources(broker: Dispatcher, call: Call[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    """Return the groups with settings, existing or not, the brokers and the topics.

    Client metrics have no settings here; version 0 lists nothing else.
    """
    cluster = broker.cluster
    found: dict[int, Iterable[str]] = {CLIENT_METRICS: ()}
    if call.version > 0:
        nodes = [str(node) for node in cluster.endpoints]
        found = {
            GROUP: cluster.catalog.group_configs,
            CLIENT_METRICS: (),
            BROKER_LOGGER: nodes,
            BROKER: nodes,
            TOPIC: cluster.catalog.topics,
        }
    wanted = call.body.resource_types or found
    if any(kind not in found for kind in wanted):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in found.items()
            if kind in wanted
            for name in names
        )
    )


APIS = (
    Api(DescribeConfigsRequest, describe_configs, refuse),
    Api(ListConfigResourcesRequest, list_resources, refusing(ListConfigResourcesResponse)),
)
